// Command images builds weir's container images without a container engine: an OCI
// layout in a tar for each, which "ctr images import", "docker load", "podman load",
// "kind load image-archive" and "skopeo" read. The same tree makes the same bytes.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop)
	if err := run(ctx, os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintf(os.Stderr, "images: %v\n", err)
		os.Exit(1)
	}
}

// run builds the images that the arguments name; without any, all.
func run(ctx context.Context, args []string, stdout io.Writer) error {
	fs := flag.NewFlagSet("images", flag.ContinueOnError)
	b := builder{}
	fs.StringVar(&b.root, "root", ".", "root of the module")
	fs.StringVar(&b.out, "out", "dist", "folder to write NAME.tar into")
	fs.StringVar(&b.repository, "repository", "weirproxy/", "what comes before the image's name")
	fs.StringVar(&b.version, "version", "unknown", "version: the binaries say it, and a label")
	fs.StringVar(&b.tag, "tag", "", "tag of the image; empty: the version")
	fs.StringVar(&b.revision, "revision", "", "commit, for a label")
	created := fs.Int64("created", 0, "date of the image, in Unix seconds: that of the commit makes builds repeatable")
	platforms := fs.String("platforms", hostPlatform(), "GOOS/GOARCH, divided by commas")
	fs.StringVar(&b.roots, "ca-certificates", "/etc/ssl/certs/ca-certificates.crt",
		"file (PEM) with the CAs that the image trusts")
	if err := fs.Parse(args); err != nil {
		return err
	}
	b.created, b.platforms = time.Unix(*created, 0).UTC(), strings.Split(*platforms, ",")
	if b.tag == "" {
		b.tag = b.version
	}
	for _, name := range fs.Args() {
		if !slices.ContainsFunc(images(), func(i image) bool { return i.name == name }) {
			return fmt.Errorf("there is no image %q", name)
		}
	}
	for _, image := range images() {
		if fs.NArg() > 0 && !slices.Contains(fs.Args(), image.name) {
			continue
		}
		path, digest, err := b.build(ctx, image)
		if err != nil {
			return fmt.Errorf("%s: %w", image.name, err)
		}
		fmt.Fprintf(stdout, "%s  %s%s:%s  %s\n", path, b.repository, image.name, b.tag, digest)
	}
	return nil
}
