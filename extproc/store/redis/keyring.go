package redis

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"sync/atomic"
)

// Sizes of what stands before authenticated data: the format, which of the keys,
// and the MAC.
const (
	keyIDSize = 4
	macSize   = sha256.Size
	sealSize  = 1 + keyIDSize + macSize
)

// Keyring has the keys that authenticate what lies in Redis: writers use the
// newest, readers accept all. It is safe for concurrent use.
type Keyring struct {
	keys atomic.Pointer[[]macKey] // newest first, never empty
}

type macKey struct {
	id     [keyIDSize]byte
	secret [sha256.Size]byte
}

// ErrNoKeys refuses a Keyring without keys: entries that anybody could have
// written are not served.
var ErrNoKeys = errors.New("no key to authenticate shared entries with")

// NewKeyring returns a keyring of the keys of a secret file, newest first.
func NewKeyring(keys ...[]byte) (*Keyring, error) {
	if len(keys) == 0 {
		return nil, ErrNoKeys
	}
	k := &Keyring{}
	k.Replace(keys)
	return k, nil
}

// Replace takes other keys into use, newest first. An empty list changes nothing.
func (k *Keyring) Replace(keys [][]byte) {
	if len(keys) == 0 {
		return
	}
	list := make([]macKey, len(keys))
	for i, key := range keys {
		// Derived, so that the file's keys can serve other purposes as well.
		list[i].secret = derive(key, "weir shared entry")
		id := derive(key, "weir shared entry key id")
		copy(list[i].id[:], id[:])
	}
	k.keys.Store(&list)
}

func derive(key []byte, purpose string) (out [sha256.Size]byte) {
	m := hmac.New(sha256.New, key)
	m.Write([]byte(purpose))
	m.Sum(out[:0])
	return out
}

// scope is what a MAC binds data to beside the data itself.
type scope []byte

// headScope: the head of one variant of one resource.
func headScope(n Name, variant string) scope {
	s := append(scope("weir head\x00"), n.digest[:]...)
	return append(s, variant...)
}

// chunkScope: one chunk of a body; last says that no chunk comes after it.
func chunkScope(n Name, body uint64, index int, last bool) scope {
	s := append(scope("weir chunk\x00"), n.digest[:]...)
	s = binary.BigEndian.AppendUint64(s, body)
	s = binary.BigEndian.AppendUint32(s, uint32(index))
	if last {
		return append(s, 1)
	}
	return append(s, 0)
}

// seal returns data with format, key and MAC in front, made with the newest key.
// The parts of data are joined.
func (k *Keyring) seal(format byte, in scope, data ...[]byte) []byte {
	key := &(*k.keys.Load())[0]
	size := sealSize
	for _, d := range data {
		size += len(d)
	}
	out := make([]byte, sealSize, size)
	out[0] = format
	copy(out[1:], key.id[:])
	for _, d := range data {
		out = append(out, d...)
	}
	copy(out[1+keyIDSize:], key.mac(format, in, out[sealSize:]))
	return out
}

// open returns the format and the data of what seal made in the same scope, by
// any of the keys.
func (k *Keyring) open(in scope, sealed []byte) (format byte, data []byte, ok bool) {
	if len(sealed) < sealSize {
		return 0, nil, false
	}
	format, data = sealed[0], sealed[sealSize:]
	keys := *k.keys.Load()
	for i := range keys {
		if [keyIDSize]byte(sealed[1:]) != keys[i].id {
			continue
		}
		if hmac.Equal(sealed[1+keyIDSize:sealSize], keys[i].mac(format, in, data)) {
			return format, data, true
		}
	}
	return 0, nil, false
}

func (k *macKey) mac(format byte, in scope, data []byte) []byte {
	m := hmac.New(sha256.New, k.secret[:])
	var n [9]byte
	n[0] = format
	binary.BigEndian.PutUint64(n[1:], uint64(len(in)))
	m.Write(n[:])
	m.Write(in)
	m.Write(data)
	return m.Sum(nil)
}
