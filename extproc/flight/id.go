package flight

import (
	"crypto/sha256"
	"encoding/binary"

	"github.com/weirproxy/weir/cachepolicy"
)

// ID names what a flight fetches: the hash of the primary key, followed, once
// the Vary of the resource is known, by a hash of the selected field values. It
// is at most 64 bytes long. PrimaryID and VariantID make it.
type ID string

// PrimaryID returns the ID of a resource whose Vary is not known.
func PrimaryID(key *cachepolicy.Key) ID { return ID(key.Hash[:]) }

// VariantID returns the ID of one variant of a resource: names are the field
// names of its Vary and values what httpcache.Vary.Select took from the request.
// Without names it is the PrimaryID.
func VariantID(key *cachepolicy.Key, names, values []string) ID {
	return PrimaryID(key).variant(names, values)
}

// primary returns the part of an ID that all variants of a resource have in
// common.
func (id ID) primary() ID {
	if len(id) > sha256.Size {
		return id[:sha256.Size]
	}
	return id
}

// variant returns the ID of the variant that names and values select of the
// resource of id. The encoding that is hashed is injective.
func (id ID) variant(names, values []string) ID {
	if len(names) == 0 {
		return id.primary()
	}
	h := sha256.New()
	var n [8]byte
	for _, list := range [...][]string{names, values} {
		for _, s := range list {
			binary.BigEndian.PutUint64(n[:], uint64(len(s)))
			h.Write(n[:])
			h.Write([]byte(s))
		}
	}
	return id.primary() + ID(h.Sum(nil))
}
