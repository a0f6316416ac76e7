package serve

import (
	"errors"
	"fmt"
	"strings"
	"unicode"

	"github.com/weirproxy/weir/extproc/store/redis"
)

// The values of --redis-outage.
const (
	outageFetch = "Fetch"
	outageShed  = "Shed"
)

// maxReplicaName bounds --replica-name, in bytes.
const maxReplicaName = 128

// validateFleet checks what belongs to --redis-url. Entries of other replicas are
// believed by their MAC alone, so there is no fleet without keys that all have; and
// whether there are others a process cannot know.
func (c *Config) validateFleet() error {
	if strings.ContainsRune(c.ReplicaName, '/') || strings.ContainsFunc(c.ReplicaName, notInName) ||
		len(c.ReplicaName) > maxReplicaName {
		return fmt.Errorf("--replica-name %q: want at most %d bytes without / and spaces", c.ReplicaName, maxReplicaName)
	}
	if c.RedisOutage != outageFetch && c.RedisOutage != outageShed {
		return fmt.Errorf("--redis-outage %q: want %s or %s", c.RedisOutage, outageFetch, outageShed)
	}
	if c.RedisURL == "" {
		var faults []error
		if c.RedisOutage == outageShed {
			faults = append(faults, errors.New("--redis-outage: wants --redis-url"))
		}
		for flag, file := range map[string]string{
			"--redis-password-file": c.RedisPasswordFile, "--redis-ca-file": c.RedisCAFile,
		} {
			if file != "" {
				faults = append(faults, fmt.Errorf("%s: wants --redis-url", flag))
			}
		}
		return errors.Join(faults...)
	}
	var faults []error
	if _, err := redis.ParseURL(string(c.RedisURL), "", ""); err != nil {
		faults = append(faults, fmt.Errorf("--redis-url: %w", err))
	}
	if c.SecretFile == "" {
		faults = append(faults, errors.New("--redis-url: wants --secret-file, with the same keys for all replicas: by "+
			"them a replica believes what others stored. Make a key with: openssl rand -hex 32"))
	}
	return errors.Join(faults...)
}

func notInName(r rune) bool { return unicode.IsSpace(r) || !unicode.IsPrint(r) }
