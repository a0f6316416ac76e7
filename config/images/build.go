package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"time"
)

// image is one image. Its first command is what it runs.
type image struct {
	name, description string
	commands          []string
}

// images are those there are. The data plane's carries weirctl, since its admin API
// listens on loopback: "kubectl exec … -- weirctl status". It does not carry the
// controller, so that nothing in it can talk to an API server.
func images() []image {
	return []image{
		{"weir-extproc", "weir's data plane: an HTTP response cache that Envoy calls by ext_proc",
			[]string{"weir-extproc", "weirctl"}},
		{"weir-controller", "weir's controller: tells the data plane what CachePolicies say, and how it went",
			[]string{"weir-controller"}},
	}
}

const (
	// binFolder is where commands are in an image.
	binFolder = "usr/local/bin"
	// rootsPath is where Go looks for CAs.
	rootsPath = "etc/ssl/certs/ca-certificates.crt"
	// user is who runs: nobody in particular, and not root.
	user = "65532:65532"
)

type builder struct {
	root, out                          string
	repository, tag, version, revision string
	created                            time.Time
	platforms                          []string
	roots                              string
}

// build writes the image and returns the path of its tar and the digest of its index.
func (b *builder) build(ctx context.Context, i image) (path, digest string, err error) {
	scratch, err := os.MkdirTemp("", "weir-images-")
	if err != nil {
		return "", "", err
	}
	defer func() { _ = os.RemoveAll(scratch) }()
	roots, err := os.ReadFile(b.roots)
	if err != nil {
		return "", "", fmt.Errorf("-ca-certificates: %w", err)
	}
	l := newLayout()
	for _, platform := range b.platforms {
		goos, goarch, ok := strings.Cut(platform, "/")
		if !ok {
			return "", "", fmt.Errorf("-platforms: %q is not GOOS/GOARCH", platform)
		}
		var programs []file
		for _, command := range i.commands {
			data, err := b.compile(ctx, goos, goarch, command, filepath.Join(scratch, command))
			if err != nil {
				return "", "", err
			}
			programs = append(programs, file{path: binFolder + "/" + command, mode: 0o755, data: data})
		}
		config := imageConfig{
			Created: b.created.Format(time.RFC3339), Architecture: goarch, OS: goos,
			Config: runConfig{
				User: user, Entrypoint: []string{"/" + binFolder + "/" + i.commands[0]},
				Env:    []string{"PATH=/" + binFolder},
				Labels: b.labels(i),
			},
		}
		// The CAs change more seldom than the programs: a layer of their own.
		layers := [][]file{{{path: rootsPath, mode: 0o644, data: roots}}, programs}
		if err := l.add(config, layers, b.created); err != nil {
			return "", "", err
		}
	}
	if err := os.MkdirAll(b.out, 0o755); err != nil {
		return "", "", err
	}
	path = filepath.Join(b.out, i.name+".tar")
	digest, err = l.write(path, b.repository+i.name+":"+b.tag, b.labels(i))
	return path, digest, err
}

func (b *builder) labels(i image) map[string]string {
	return map[string]string{
		"org.opencontainers.image.title":       i.name,
		"org.opencontainers.image.description": i.description,
		"org.opencontainers.image.version":     b.version,
		"org.opencontainers.image.revision":    b.revision,
		"org.opencontainers.image.licenses":    "Apache-2.0",
		"org.opencontainers.image.source":      "https://github.com/weirproxy/weir",
	}
}

// compile builds a command as "make build" does, for a platform.
func (b *builder) compile(ctx context.Context, goos, goarch, command, to string) ([]byte, error) {
	build := exec.CommandContext(ctx, "go", "build", "-trimpath", "-buildvcs=false",
		"-ldflags", "-s -w -X main.version="+b.version, "-o", to, "./cmd/"+command)
	build.Dir = b.root
	build.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS="+goos, "GOARCH="+goarch)
	if out, err := build.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("go build ./cmd/%s: %w: %s", command, err, out)
	}
	return os.ReadFile(to)
}

func hostPlatform() string { return "linux/" + runtime.GOARCH }
