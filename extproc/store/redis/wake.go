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

// Message is what is published when the fetch of a variant ended that had this
// token.
func (w Wake) Message(n Name, variant string, token uint64) string {
	return string(w) + " " + n.tag + " " + variant + " " + strconv.FormatUint(token, 10)
}

// Message is a wake-up that was received.
type Message struct {
	Wake    Wake
	Name    string // Name.String of the resource
	Variant string
	Token   uint64
}

// ParseMessage reads what Wake.Message made.
func ParseMessage(s string) (Message, bool) {
	parts := strings.Split(s, " ")
	if len(parts) != 4 {
		return Message{}, false
	}
	token, err := strconv.ParseUint(parts[3], 10, 64)
	return Message{Wake: Wake(parts[0]), Name: parts[1], Variant: parts[2], Token: token}, err == nil
}
