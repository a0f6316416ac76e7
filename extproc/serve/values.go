package serve

import (
	"errors"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"
)

// MemoryLimit is a size in bytes, or a share of the memory there is. Exactly
// one of the two is set. It implements [github.com/spf13/pflag.Value].
type MemoryLimit struct {
	Percent int // 1 to 100
	Bytes   int64
}

// Of returns the limit in bytes where total bytes of memory can be used.
func (l *MemoryLimit) Of(total int64) int64 {
	if l.Bytes > 0 {
		return l.Bytes
	}
	return total / 100 * int64(l.Percent)
}

// String returns the notation that Set reads.
func (l *MemoryLimit) String() string {
	if l.Bytes > 0 {
		return resource.NewQuantity(l.Bytes, resource.BinarySI).String()
	}
	return strconv.Itoa(l.Percent) + "%"
}

// Set reads "25%", "64Mi", "1G" or a number of bytes.
func (l *MemoryLimit) Set(s string) error {
	errNotation := errors.New(`want a size such as 64Mi or 2Gi, or a share of memory such as 25%`)
	if share, ok := strings.CutSuffix(s, "%"); ok {
		percent, err := strconv.Atoi(share)
		if err != nil || percent < 1 || percent > 100 {
			return errNotation
		}
		*l = MemoryLimit{Percent: percent}
		return nil
	}
	quantity, err := resource.ParseQuantity(s)
	if err != nil || quantity.Value() <= 0 { // 0 also if it is too large for an int64
		return errNotation
	}
	*l = MemoryLimit{Bytes: quantity.Value()}
	return nil
}

// Type names the notation in help texts.
func (*MemoryLimit) Type() string { return "size" }
