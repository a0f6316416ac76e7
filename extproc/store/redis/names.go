package redis

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"strconv"
	"strings"

	"github.com/weirproxy/weir/cachepolicy"
)

// Name is how the keys of one resource are called in Redis. The digest is made
// of the canonical key alone: what a Key claims to be its hash counts for nothing
// here.
type Name struct {
	digest [sha256.Size]byte
	tag    string
}

// NameOf returns the name of a key's resource.
func NameOf(key *cachepolicy.Key) Name {
	n := Name{digest: sha256.Sum256([]byte(key.Canonical))}
	n.tag = base64.RawURLEncoding.EncodeToString(n.digest[:])
	return n
}

// String returns the digest as it stands in the keys.
func (n Name) String() string { return n.tag }

// Primary is the Redis key of the resource's record.
func (n Name) Primary() string { return "weir:{" + n.tag + "}" }

// Head is the Redis key of a variant's head.
func (n Name) Head(variant string) string { return n.Primary() + ":v:" + variant }

// Lease is the Redis key of a variant's lease.
func (n Name) Lease(variant string) string { return n.Primary() + ":l:" + variant }

func (n Name) chunk(body uint64, i int) string {
	return n.Primary() + ":b:" + strconv.FormatUint(body, 10) + ":" + strconv.Itoa(i)
}

// AnyVariant is the VariantName of a resource that does not vary.
const AnyVariant = "-"

// VariantName names the variant that values select among responses whose Vary
// has these names. It is a digest: heads hold the values, and readers compare
// them.
func VariantName(names, values []string) string {
	if len(names) == 0 {
		return AnyVariant
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
	return base64.RawURLEncoding.EncodeToString(h.Sum(nil)[:16])
}

// VaryNames is the form in which the record of a resource has the names of Vary.
func VaryNames(names []string) string { return strings.Join(names, ",") }

// maxVaryNames bounds what ParseVaryNames takes from Redis.
const maxVaryNames = 8 << 10

// ParseVaryNames reads what VaryNames wrote.
func ParseVaryNames(s string) []string {
	if s == "" || len(s) > maxVaryNames {
		return nil
	}
	return strings.Split(s, ",")
}
