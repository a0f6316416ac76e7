package redis

import (
	"context"
	"fmt"
	"time"
)

// The list of hot keys: one for the fleet, sealed like an entry.
const (
	hotKey     = "weir:{hot}"
	hotTurnKey = "weir:{hot}:turn"
	hotFormat  = 1
	hotLife    = 7 * 24 * time.Hour
)

// MaxHot bounds the list of hot keys, in bytes.
const MaxHot = 1 << 20

// hotScope is what the MAC of the list is bound to.
func hotScope() scope { return scope("weir hot\x00") }

// HotTurn reports whether it is this replica's turn to save the list of hot keys:
// one has it within each interval.
func (s *Store) HotTurn(ctx context.Context, replica string, interval time.Duration) (bool, error) {
	ctx, cancel := context.WithTimeout(ctx, s.opts.Timeout)
	defer cancel()
	won, err := s.client.SetNX(ctx, hotTurnKey, replica, interval).Result()
	if err != nil {
		return false, fmt.Errorf("redis hot keys: %w", err)
	}
	return won, nil
}

// SaveHot saves a list of hot keys of at most MaxHot bytes for all.
func (s *Store) SaveHot(ctx context.Context, list []byte) error {
	ctx, cancel := context.WithTimeout(ctx, s.opts.Timeout)
	defer cancel()
	if err := s.client.Set(ctx, hotKey, s.opts.Keys.seal(hotFormat, hotScope(), list), hotLife).Err(); err != nil {
		return fmt.Errorf("redis hot keys: %w", err)
	}
	return nil
}

// LoadHot returns the list of hot keys; nil if there is none to be believed.
func (s *Store) LoadHot(ctx context.Context) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, s.opts.Timeout)
	defer cancel()
	sealed, err := s.client.GetRange(ctx, hotKey, 0, MaxHot+sealSize).Result()
	if err != nil {
		return nil, fmt.Errorf("redis hot keys: %w", err)
	}
	if sealed == "" {
		return nil, nil
	}
	format, list, ok := s.opts.Keys.open(hotScope(), []byte(sealed))
	switch {
	case !ok:
		s.counts.mac.Add(1)
		return nil, nil
	case format != hotFormat:
		s.counts.format.Add(1)
		return nil, nil
	}
	return list, nil
}
