package cluster

import (
	"archive/tar"
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
)

const (
	pauseImage        = "weir.test/pause:local"
	coreDNSImage      = "weir.test/coredns:local"
	envoyGatewayImage = "weir.test/envoy-gateway:local"
	// EnvoyImage is the image of the Envoy that tools.env pins, once InstallEnvoyGateway has loaded it.
	EnvoyImage = "weir.test/envoy:local"
)

// Image is a container image made of files of this machine.
type Image struct {
	// Name is what pods call it, with a domain and a tag: weir.test/NAME:local. Their imagePullPolicy must not be Always.
	Name string
	// Files are what it holds: the path inside, absolute, by the file or folder here. Links are followed.
	Files map[string]string
	// Program is the entry point, one of Files. The libraries it is linked with come along.
	Program string
	// User is the user to run as, "" for root.
	User string
}

// write writes the image as an archive of one layer, the same bytes for the same files.
func (i Image) write(w io.Writer) error {
	layer, err := i.layer()
	if err != nil {
		return fmt.Errorf("make the image %s: %w", i.Name, err)
	}
	sum := sha256.Sum256(layer)
	config, err := json.Marshal(map[string]any{
		"architecture": runtime.GOARCH, "os": "linux",
		"config": map[string]any{
			"Entrypoint": []string{i.Program}, "User": i.User, "Env": []string{"PATH=/usr/local/bin:/usr/bin:/bin"},
		},
		"rootfs": map[string]any{"type": "layers", "diff_ids": []string{"sha256:" + hex.EncodeToString(sum[:])}},
	})
	if err != nil {
		return err
	}
	manifest, err := json.Marshal([]map[string]any{
		{"Config": "config.json", "RepoTags": []string{i.Name}, "Layers": []string{"layer.tar"}},
	})
	if err != nil {
		return err
	}
	archive := tar.NewWriter(w)
	for _, part := range []struct {
		name    string
		content []byte
	}{{"manifest.json", manifest}, {"config.json", config}, {"layer.tar", layer}} {
		header := &tar.Header{Name: part.name, Mode: 0o644, Size: int64(len(part.content))}
		if err := cmp.Or(archive.WriteHeader(header), writeAll(archive, part.content)); err != nil {
			return err
		}
	}
	return archive.Close()
}

func writeAll(w io.Writer, content []byte) error {
	_, err := w.Write(content)
	return err
}

// layer returns the tar of the image's files.
func (i Image) layer() ([]byte, error) {
	files, err := i.allFiles()
	if err != nil {
		return nil, err
	}
	var layer bytes.Buffer
	archive := tar.NewWriter(&layer)
	if err := archive.WriteHeader(&tar.Header{Typeflag: tar.TypeDir, Name: "tmp/", Mode: 0o1777}); err != nil {
		return nil, err
	}
	for _, inside := range slices.Sorted(maps.Keys(files)) {
		if err := addTree(archive, inside, files[inside]); err != nil {
			return nil, err
		}
	}
	return layer.Bytes(), archive.Close()
}

// addTree adds a file, or a folder and all below it.
func addTree(archive *tar.Writer, inside, source string) error {
	source, err := filepath.EvalSymlinks(source)
	if err != nil {
		return err
	}
	return filepath.WalkDir(source, func(file string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		below, err := filepath.Rel(source, file)
		if err != nil {
			return err
		}
		content, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		name := strings.TrimPrefix(path.Join(inside, filepath.ToSlash(below)), "/")
		header := &tar.Header{Name: name, Mode: int64(info.Mode().Perm()), Size: int64(len(content))}
		if err := archive.WriteHeader(header); err != nil {
			return err
		}
		return writeAll(archive, content)
	})
}

var libraryPath = regexp.MustCompile(`/\S+`)

// allFiles returns Files, and the shared libraries that the program is linked with, at the places they have here.
func (i Image) allFiles() (map[string]string, error) {
	all := maps.Clone(i.Files)
	out, err := exec.Command("ldd", i.Files[i.Program]).Output()
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) {
		return all, nil // not a dynamic executable
	}
	if err != nil {
		return nil, fmt.Errorf("find the libraries of %s: %w", i.Program, err)
	}
	for _, library := range libraryPath.FindAllString(string(out), -1) {
		all[library] = library
	}
	return all, nil
}
