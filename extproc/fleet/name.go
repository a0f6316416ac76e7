package fleet

import (
	"crypto/sha256"
	"encoding/hex"
	"strconv"
	"strings"
)

// maxName is the longest namespace or value that is kept as it is, in bytes. Of
// longer ones a digest is: a stamp must not cost what its URI does.
const maxName = 256

// name is what a stamp covers. An empty namespace means every namespace.
type name struct {
	kind             Kind
	namespace, value string
}

func nameOf(kind Kind, namespace, value string) name {
	return name{kind, short(namespace), short(value)}
}

func short(s string) string {
	if len(s) <= maxName {
		return s
	}
	sum := sha256.Sum256([]byte(s))
	return "#" + hex.EncodeToString(sum[:])
}

// Letters of kinds and modes in a stamp's text.
const (
	kindLetters = "uthpna" // in the order of the Kinds
	modeLetters = "HS"     // in the order of the Modes
)

// text returns the stamp of n in Redis: mode, kind, length of the namespace, a
// colon, namespace, value.
func (n name) text(mode Mode) string {
	return modeLetters[mode:mode+1] + kindLetters[n.kind:n.kind+1] +
		strconv.Itoa(len(n.namespace)) + ":" + n.namespace + n.value
}

// maxText bounds the text of a stamp that is read.
const maxText = 2*maxName + 16

// parseText reads what text made. A kind of another release, or a text that is
// none, covers everything: a stamp that is not understood must not be lost.
func parseText(s string) (name, Mode) {
	mode := Hard
	if strings.HasPrefix(s, "S") {
		mode = Soft
	}
	if len(s) < 4 || len(s) > maxText {
		return name{kind: ByAll}, mode
	}
	kind := strings.IndexByte(kindLetters, s[1])
	number, rest, ok := strings.Cut(s[2:], ":")
	n, err := strconv.ParseUint(number, 10, 16)
	if kind < 0 || !ok || err != nil || int(n) > len(rest) {
		return name{kind: ByAll}, mode
	}
	return name{Kind(kind), rest[:n], rest[n:]}, mode
}
