package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// entry is a file of a tar.
type entry struct {
	header tar.Header
	data   []byte
}

func untar(t *testing.T, r io.Reader) map[string]entry {
	t.Helper()
	files := map[string]entry{}
	for tr := tar.NewReader(r); ; {
		header, err := tr.Next()
		if errors.Is(err, io.EOF) {
			return files
		}
		if err != nil {
			t.Fatal(err)
		}
		data, err := io.ReadAll(tr)
		if err != nil {
			t.Fatal(err)
		}
		files[header.Name] = entry{*header, data}
	}
}

// follow returns what a descriptor of a layout leads to; the digest must be right.
func follow[T any](t *testing.T, layout map[string]entry, d descriptor) T {
	t.Helper()
	data := layout[blobPath(d.Digest)].data
	if digestOf(data) != d.Digest || len(data) != d.Size {
		t.Fatalf("%s %s: %d bytes of digest %s, want %d", d.MediaType, d.Digest, len(data), digestOf(data), d.Size)
	}
	var out T
	if raw, ok := any(&out).(*[]byte); ok {
		*raw = data
		return out
	}
	decoder := json.NewDecoder(bytes.NewReader(data))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&out); err != nil {
		t.Fatalf("%s: %v", d.MediaType, err)
	}
	return out
}

// rootOf returns the files of an image, layer on layer, having checked the layers.
func rootOf(t *testing.T, layout map[string]entry, m manifest, config imageConfig) map[string]entry {
	t.Helper()
	root := map[string]entry{}
	for i, layer := range m.Layers {
		unpacked, err := gzip.NewReader(bytes.NewReader(follow[[]byte](t, layout, layer)))
		if err != nil {
			t.Fatal(err)
		}
		plain, err := io.ReadAll(unpacked)
		if err != nil {
			t.Fatal(err)
		}
		if config.RootFS.DiffIDs[i] != digestOf(plain) {
			t.Errorf("layer %d has the digest %s, the configuration says %s", i, digestOf(plain), config.RootFS.DiffIDs[i])
		}
		maps.Copy(root, untar(t, bytes.NewReader(plain)))
	}
	return root
}

func newBuilder(t *testing.T) *builder {
	t.Helper()
	out := t.TempDir()
	roots := filepath.Join(out, "roots.pem")
	if err := os.WriteFile(roots, []byte("some CAs\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	return &builder{
		root: "../..", out: out, repository: "weirproxy/", tag: "v1.2.3", version: "v1.2.3", revision: "abc",
		created: time.Unix(1700000000, 0).UTC(), platforms: []string{hostPlatform()}, roots: roots,
	}
}

// TestImages builds the images, reads them as a container engine would, and runs what is in them.
func TestImages(t *testing.T) {
	t.Parallel()
	for _, image := range images() {
		t.Run(image.name, func(t *testing.T) {
			t.Parallel()
			path, digest, err := newBuilder(t).build(t.Context(), image)
			if err != nil {
				t.Fatal(err)
			}
			data, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			layout := untar(t, bytes.NewReader(data))
			if got := string(layout["oci-layout"].data); got != `{"imageLayoutVersion":"1.0.0"}` {
				t.Errorf("oci-layout: %s", got)
			}
			var top index
			if err := json.Unmarshal(layout["index.json"].data, &top); err != nil || len(top.Manifests) != 1 {
				t.Fatalf("index.json: %d manifests, %v", len(top.Manifests), err)
			}
			if top.Manifests[0].Digest != digest {
				t.Errorf("index.json names %s, the build said %s", top.Manifests[0].Digest, digest)
			}
			if got := top.Manifests[0].Annotations["io.containerd.image.name"]; got != "weirproxy/"+image.name+":v1.2.3" {
				t.Errorf("containerd would name it %s", got)
			}
			m := follow[manifest](t, layout, top.Manifests[0])
			config := follow[imageConfig](t, layout, m.Config)
			checkConfig(t, image, config)
			checkRoot(t, image, rootOf(t, layout, m, config))
		})
	}
}

// TestSameBytes holds that a tree makes the same image each time, wherever it is built.
func TestSameBytes(t *testing.T) {
	t.Parallel()
	small := image{name: "weirctl", commands: []string{"weirctl"}}
	var digests, sums []string
	for range 2 {
		path, digest, err := newBuilder(t).build(t.Context(), small)
		if err != nil {
			t.Fatal(err)
		}
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		digests, sums = append(digests, digest), append(sums, digestOf(data))
	}
	if digests[0] != digests[1] || sums[0] != sums[1] {
		t.Errorf("built twice: digests %v, archives %v", digests, sums)
	}
}

// TestRunRefuses holds what the command line must not say.
func TestRunRefuses(t *testing.T) {
	t.Parallel()
	for args, want := range map[string]string{
		"weir-proxy": `no image "weir-proxy"`, "-platforms=linux weirctl": "no image", "-tags=x": "flag provided",
		"-platforms=linux -ca-certificates=images_test.go weir-controller": "GOOS/GOARCH",
		"-ca-certificates=/nowhere weir-controller":                        "-ca-certificates",
	} {
		err := run(t.Context(), append([]string{"-out=" + t.TempDir(), "-root=.."}, strings.Fields(args)...), io.Discard)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("images %s: %v, want %s", args, err, want)
		}
	}
}

func checkConfig(t *testing.T, image image, config imageConfig) {
	t.Helper()
	if config.Config.User != "65532:65532" || config.Created != "2023-11-14T22:13:20Z" || config.OS != "linux" {
		t.Errorf("user %s, created %s, for %s", config.Config.User, config.Created, config.OS)
	}
	if diff := cmp.Diff([]string{"/usr/local/bin/" + image.name}, config.Config.Entrypoint); diff != "" {
		t.Errorf("entrypoint (-want +got):\n%s", diff)
	}
	for label, want := range map[string]string{"title": image.name, "version": "v1.2.3", "revision": "abc"} {
		if got := config.Config.Labels["org.opencontainers.image."+label]; got != want {
			t.Errorf("label %s: %q, want %q", label, got, want)
		}
	}
}

// checkRoot holds that an image has its commands and CAs and nothing else, and that the commands run by themselves.
func checkRoot(t *testing.T, image image, root map[string]entry) {
	t.Helper()
	var want []string
	for _, command := range image.commands {
		want = append(want, "usr/local/bin/"+command)
	}
	want = append(want, "etc/ssl/certs/ca-certificates.crt")
	var got []string
	for name, e := range root {
		if e.header.Typeflag == tar.TypeReg {
			got = append(got, name)
		}
		if e.header.Uid != 0 || e.header.Gid != 0 || e.header.Mode&0o022 != 0 {
			t.Errorf("%s belongs to %d:%d, mode %o: who runs could change it", name, e.header.Uid, e.header.Gid, e.header.Mode)
		}
	}
	slices.Sort(want)
	slices.Sort(got)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("files (-want +got):\n%s", diff)
	}
	for _, command := range image.commands {
		program := filepath.Join(t.TempDir(), command)
		if err := os.WriteFile(program, root["usr/local/bin/"+command].data, 0o700); err != nil {
			t.Fatal(err)
		}
		for arg, says := range map[string]string{"--help": command, "--version": "v1.2.3"} {
			run := exec.CommandContext(t.Context(), program, arg)
			run.Env = []string{} // as in an empty image
			if text, err := run.CombinedOutput(); err != nil || !strings.Contains(string(text), says) {
				t.Errorf("%s %s: %v, does not say %q:\n%s", command, arg, err, says, text)
			}
		}
		if file, err := exec.Command("ldd", program).CombinedOutput(); err == nil {
			t.Errorf("%s is not static:\n%s", command, file)
		}
	}
}

// TestDockerfile holds that an image made with the Dockerfile carries the same commands.
func TestDockerfile(t *testing.T) {
	t.Parallel()
	data, err := os.ReadFile("../../Dockerfile")
	if err != nil {
		t.Fatal(err)
	}
	for _, image := range images() {
		_, stage, ok := strings.Cut(string(data), "FROM scratch AS "+image.name+"\n")
		stage, _, _ = strings.Cut(stage, "\nFROM ")
		if !ok || !strings.Contains(stage, `ENTRYPOINT ["/usr/local/bin/`+image.name+`"]`) || !strings.Contains(stage, "USER "+user) {
			t.Errorf("no stage %s that runs it as %s", image.name, user)
		}
		for _, command := range image.commands {
			if !strings.Contains(stage, "/out/"+command+" ") {
				t.Errorf("stage %s has no %s", image.name, command)
			}
		}
	}
}

// TestSeveralPlatforms holds that index.json names an index then, with an image for each.
func TestSeveralPlatforms(t *testing.T) {
	t.Parallel()
	l := newLayout()
	for _, arch := range []string{"amd64", "arm64"} {
		files := [][]file{{{path: "usr/local/bin/x", mode: 0o755, data: []byte(arch)}}}
		if err := l.add(imageConfig{Architecture: arch, OS: "linux"}, files, time.Unix(0, 0)); err != nil {
			t.Fatal(err)
		}
	}
	path := filepath.Join(t.TempDir(), "x.tar")
	digest, err := l.write(path, "registry.example:5000/x:v1", nil)
	if err != nil {
		t.Fatal(err)
	}
	file, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = file.Close() }()
	layout := untar(t, file)
	var top index
	if err := json.Unmarshal(layout["index.json"].data, &top); err != nil || top.Manifests[0].Digest != digest {
		t.Fatalf("index.json names %v, want %s; %v", top.Manifests, digest, err)
	}
	if got := top.Manifests[0].Annotations["org.opencontainers.image.ref.name"]; got != "v1" {
		t.Errorf("the tag is %q", got)
	}
	var got []string
	for _, d := range follow[index](t, layout, top.Manifests[0]).Manifests {
		m := follow[manifest](t, layout, d)
		config := follow[imageConfig](t, layout, m.Config)
		root := rootOf(t, layout, m, config)
		got = append(got, d.Platform.OS+"/"+d.Platform.Architecture+": "+string(root["usr/local/bin/x"].data))
	}
	if diff := cmp.Diff([]string{"linux/amd64: amd64", "linux/arm64: arm64"}, got); diff != "" {
		t.Errorf("images (-want +got):\n%s", diff)
	}
}
