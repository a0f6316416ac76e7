package redis

import (
	"strconv"
	"strings"
)

// channels is how many channels wake-ups are spread over.
const channels = 64

// Wake says why those who wait for a resource are woken.
type Wake string

// The reasons to wake waiters.
const (
	WakeCommitted   Wake = "c" // an answer is there
	WakeFree        Wake = "r" // the lease was given back
	WakeUncacheable Wake = "u" // the answer cannot be shared
	WakeFailed      Wake = "f" // the fetch failed
)

// Channel is the channel on which those who wait for the resource are woken.
func (n Name) Channel() string { return channel(int(n.digest[0]) % channels) }

func channel(i int) string { return "weir:wake:" + strconv.Itoa(i) }

// Channels lists all channels.
func Channels() []string {
	list := make([]string, channels)
	for i := range list {
		list[i] = channel(i)
	}
	return list
}

// Message is what is published for a resource.
func (w Wake) Message(n Name) string { return string(w) + " " + n.tag }

// ParseMessage reads what Message made: the reason and Name.String of the
// resource.
func ParseMessage(s string) (Wake, string, bool) {
	reason, name, ok := strings.Cut(s, " ")
	return Wake(reason), name, ok
}
