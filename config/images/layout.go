package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"os"
	"path"
	"slices"
	"strings"
	"time"
)

// Media types of the OCI image specification, v1.1.
const (
	typeIndex    = "application/vnd.oci.image.index.v1+json"
	typeManifest = "application/vnd.oci.image.manifest.v1+json"
	typeConfig   = "application/vnd.oci.image.config.v1+json"
	typeLayer    = "application/vnd.oci.image.layer.v1.tar+gzip"
)

// file is one file of a layer.
type file struct {
	path string
	mode int64
	data []byte
}

type descriptor struct {
	MediaType   string            `json:"mediaType"`
	Digest      string            `json:"digest"`
	Size        int               `json:"size"`
	Platform    *platform         `json:"platform,omitempty"`
	Annotations map[string]string `json:"annotations,omitempty"`
}

type platform struct {
	Architecture string `json:"architecture"`
	OS           string `json:"os"`
}

type manifest struct {
	SchemaVersion int          `json:"schemaVersion"`
	MediaType     string       `json:"mediaType"`
	Config        descriptor   `json:"config"`
	Layers        []descriptor `json:"layers"`
}

type index struct {
	SchemaVersion int               `json:"schemaVersion"`
	MediaType     string            `json:"mediaType"`
	Manifests     []descriptor      `json:"manifests"`
	Annotations   map[string]string `json:"annotations,omitempty"`
}

type imageConfig struct {
	Created      string    `json:"created"`
	Architecture string    `json:"architecture"`
	OS           string    `json:"os"`
	Config       runConfig `json:"config"`
	RootFS       rootFS    `json:"rootfs"`
}

type runConfig struct {
	User       string            `json:"User"`
	Env        []string          `json:"Env"`
	Entrypoint []string          `json:"Entrypoint"`
	Labels     map[string]string `json:"Labels"`
}

type rootFS struct {
	Type    string   `json:"type"`
	DiffIDs []string `json:"diff_ids"`
}

// dockerManifest is what "docker load" read before it read OCI layouts.
type dockerManifest struct {
	Config   string
	RepoTags []string
	Layers   []string
}

// layout is an OCI image layout in the making: an image for each platform.
type layout struct {
	blobs     map[string][]byte
	manifests []descriptor
	docker    []dockerManifest
}

func newLayout() *layout { return &layout{blobs: map[string][]byte{}} }

// blob adds a blob and says how to find it.
func (l *layout) blob(mediaType string, data []byte) descriptor {
	sum := digestOf(data)
	l.blobs[sum] = data
	return descriptor{MediaType: mediaType, Digest: sum, Size: len(data)}
}

func (l *layout) json(mediaType string, v any) (descriptor, error) {
	data, err := json.Marshal(v)
	if err != nil {
		return descriptor{}, err
	}
	return l.blob(mediaType, data), nil
}

// add adds the image of one platform.
func (l *layout) add(config imageConfig, layers [][]file, created time.Time) error {
	m := manifest{SchemaVersion: 2, MediaType: typeManifest}
	old := dockerManifest{}
	config.RootFS.Type = "layers"
	for _, files := range layers {
		plain, err := tarOf(files, created)
		if err != nil {
			return err
		}
		packed, err := gzipOf(plain)
		if err != nil {
			return err
		}
		config.RootFS.DiffIDs = append(config.RootFS.DiffIDs, digestOf(plain))
		m.Layers = append(m.Layers, l.blob(typeLayer, packed))
		old.Layers = append(old.Layers, blobPath(m.Layers[len(m.Layers)-1].Digest))
	}
	var err error
	if m.Config, err = l.json(typeConfig, config); err != nil {
		return err
	}
	old.Config = blobPath(m.Config.Digest)
	d, err := l.json(typeManifest, m)
	if err != nil {
		return err
	}
	d.Platform = &platform{Architecture: config.Architecture, OS: config.OS}
	l.manifests, l.docker = append(l.manifests, d), append(l.docker, old)
	return nil
}

// write writes the layout as a tar. Of several platforms it makes an index; index.json
// then names that one. It returns the digest that a registry would give the image.
func (l *layout) write(to, name string, annotations map[string]string) (string, error) {
	top := l.manifests[0]
	if len(l.manifests) > 1 {
		var err error
		top, err = l.json(typeIndex, index{2, typeIndex, l.manifests, annotations})
		if err != nil {
			return "", err
		}
	}
	top.Annotations = map[string]string{
		"org.opencontainers.image.ref.name": name[strings.LastIndexByte(name, ':')+1:],
		"io.containerd.image.name":          name,
	}
	indexJSON, err := json.Marshal(index{2, typeIndex, []descriptor{top}, nil})
	if err != nil {
		return "", err
	}
	files := []file{
		{"oci-layout", 0o644, []byte(`{"imageLayoutVersion":"1.0.0"}`)},
		{"index.json", 0o644, indexJSON},
	}
	if len(l.docker) == 1 {
		l.docker[0].RepoTags = []string{name}
		old, err := json.Marshal(l.docker)
		if err != nil {
			return "", err
		}
		files = append(files, file{"manifest.json", 0o644, old})
	}
	for _, sum := range slices.Sorted(maps.Keys(l.blobs)) {
		files = append(files, file{blobPath(sum), 0o644, l.blobs[sum]})
	}
	data, err := tarOf(files, time.Unix(0, 0))
	if err != nil {
		return "", err
	}
	return top.Digest, os.WriteFile(to, data, 0o644)
}

// tarOf makes a tar with the folders that the files need; all belongs to root.
func tarOf(files []file, modified time.Time) ([]byte, error) {
	var out bytes.Buffer
	w := tar.NewWriter(&out)
	made := map[string]bool{".": true}
	var folder func(name string) error
	folder = func(name string) error {
		if made[name] {
			return nil
		}
		made[name] = true
		if err := folder(path.Dir(name)); err != nil {
			return err
		}
		return w.WriteHeader(&tar.Header{
			Typeflag: tar.TypeDir, Name: name + "/", Mode: 0o755, ModTime: modified, Format: tar.FormatPAX,
		})
	}
	for _, f := range files {
		if err := folder(path.Dir(f.path)); err != nil {
			return nil, err
		}
		err := w.WriteHeader(&tar.Header{
			Typeflag: tar.TypeReg, Name: f.path, Mode: f.mode, Size: int64(len(f.data)), ModTime: modified,
			Format: tar.FormatPAX,
		})
		if err != nil {
			return nil, err
		}
		if _, err := w.Write(f.data); err != nil {
			return nil, err
		}
	}
	err := w.Close()
	return out.Bytes(), err
}

func gzipOf(data []byte) ([]byte, error) {
	var out bytes.Buffer
	w := gzip.NewWriter(&out) // no name and no time in its header
	if _, err := io.Copy(w, bytes.NewReader(data)); err != nil {
		return nil, fmt.Errorf("compress: %w", err)
	}
	err := w.Close()
	return out.Bytes(), err
}

func digestOf(data []byte) string {
	sum := sha256.Sum256(data)
	return "sha256:" + hex.EncodeToString(sum[:])
}

func blobPath(digest string) string { return "blobs/sha256/" + digest[len("sha256:"):] }
