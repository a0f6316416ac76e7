package refill

import (
	"bytes"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
)

// Bounds of a secret file.
const (
	minKeySize    = 32 // bytes of a key
	maxKeys       = 64
	maxSecretFile = 64 << 10
)

// LoadKeys reads a secret file: one key a line, newest first, in hexadecimal, of
// at least 32 bytes. Empty lines are allowed. Errors name the line and never show
// what is in it.
func LoadKeys(path string) ([][]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("secret file: %w", err)
	}
	defer func() { _ = f.Close() }()
	content, err := io.ReadAll(io.LimitReader(f, maxSecretFile+1))
	if err != nil {
		return nil, fmt.Errorf("secret file: %w", err)
	}
	keys, err := ParseKeys(content)
	if err != nil {
		return nil, fmt.Errorf("secret file %s: %w", path, err)
	}
	return keys, nil
}

// ParseKeys returns the keys in the content of a secret file; see LoadKeys.
func ParseKeys(content []byte) ([][]byte, error) {
	if len(content) > maxSecretFile {
		return nil, fmt.Errorf("larger than %d bytes", maxSecretFile)
	}
	var keys [][]byte
	number := 0
	for line := range bytes.Lines(content) {
		number++
		line = bytes.TrimSpace(line)
		if len(line) == 0 {
			continue
		}
		key := make([]byte, hex.DecodedLen(len(line)))
		if _, err := hex.Decode(key, line); err != nil {
			return nil, fmt.Errorf("line %d: not hexadecimal", number) // err would show a part of the key
		}
		switch {
		case len(key) < minKeySize:
			return nil, fmt.Errorf("line %d: a key of %d bytes, need at least %d", number, len(key), minKeySize)
		case len(keys) == maxKeys:
			return nil, fmt.Errorf("line %d: more than %d keys", number, maxKeys)
		}
		for i := range keys {
			if bytes.Equal(keys[i], key) {
				return nil, fmt.Errorf("line %d: this key was there before", number)
			}
		}
		keys = append(keys, key)
	}
	if len(keys) == 0 {
		return nil, errors.New("no key in it")
	}
	return keys, nil
}
