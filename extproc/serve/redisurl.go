package serve

import "strings"

// RedisURL is the value of --redis-url. As text it shows no password, should the
// URL have one. It implements [github.com/spf13/pflag.Value].
type RedisURL string

// String returns the URL with the password, if there is one, blotted out.
func (u *RedisURL) String() string {
	raw := string(*u)
	scheme, rest, ok := strings.Cut(raw, "://")
	if !ok {
		scheme, rest = "", raw
	} else {
		scheme += "://"
	}
	authority, path, slash := rest, "", strings.IndexAny(rest, "/?")
	// In a URL that is none a slash may be part of the password.
	if at := strings.LastIndexByte(rest, '@'); slash > at {
		authority, path = rest[:slash], rest[slash:]
	}
	at := strings.LastIndexByte(authority, '@')
	if at < 0 {
		return raw
	}
	user, _, password := strings.Cut(authority[:at], ":")
	if password {
		user += ":xxxxx"
	}
	return scheme + user + authority[at:] + path
}

// Set takes the URL as it is; Validate checks it.
func (u *RedisURL) Set(s string) error {
	*u = RedisURL(s)
	return nil
}

// Type names the notation in help texts.
func (*RedisURL) Type() string { return "url" }
