// SPDX-License-Identifier: Apache-2.0

package memberimage

import (
	"archive/tar"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"github.com/klauspost/compress/gzip"

	"github.com/capstan-dev/capstan/hack/internal/debian"
)

// layerFormat is a part of every layer's key. Raise it when the code below gives other bytes for the same packages.
const layerFormat = "1"

const (
	certificates = "usr/share/ca-certificates/"
	bundle       = "etc/ssl/certs/ca-certificates.crt"
)

// key of a layer in the cache: a hash of all that decides its bytes.
func (i Image) key(name string, packages []debian.Package) string {
	sum := sha256.New()
	_, _ = fmt.Fprintln(sum, layerFormat, name, i.omit(), merged())
	if len(i.edits) > 0 {
		_, _ = fmt.Fprintln(sum, i.edits)
	}
	if name == base {
		_, _ = fmt.Fprintln(sum, i.frame())
	}
	for _, p := range packages {
		_, _ = fmt.Fprintln(sum, p.Name, p.SHA256)
	}
	return hex.EncodeToString(sum.Sum(nil))
}

// write writes a layer: what an installation of the packages would leave, owned by root unless it says otherwise, dated 1970,
// without a file that changes the user. The order is the one of the packages.
func (i Image) write(ctx context.Context, w io.Writer, name string, store *debian.Store, packages []debian.Package) error {
	l := &layerWriter{tar: tar.NewWriter(w), have: map[string]string{}, omitted: i.omit(), edits: i.edits}
	if name == base {
		for _, f := range i.frame() {
			if err := l.made(f); err != nil {
				return err
			}
		}
	}
	for _, p := range packages {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := l.install(store.Path(p), p.Name); err != nil {
			return fmt.Errorf("cannot unpack %s %s: %w", p.Name, p.Version, err)
		}
	}
	if l.bundle.Len() > 0 {
		if err := l.made(made{path: bundle, mode: 0o644, content: l.bundle.String()}); err != nil {
			return err
		}
	}
	return l.tar.Close()
}

type layerWriter struct {
	tar *tar.Writer
	// omitted matches the paths that stay out.
	omitted *regexp.Regexp
	edits   []edit
	// have maps each path that is written to what it is: a kind and, for a link, a target.
	have map[string]string
	// bundle collects the certificates that an installation would put into one file.
	bundle bytes.Buffer
}

// install adds the files of a package, and its description where scanners look for it.
func (l *layerWriter) install(file, name string) error {
	if err := debian.Walk(file, l.unpack); err != nil {
		return err
	}
	control, err := debian.Control(file)
	if err != nil {
		return err
	}
	return l.made(made{path: "var/lib/dpkg/status.d/" + name, mode: 0o644, content: string(control) + "\n"})
}

func (l *layerWriter) unpack(hdr *tar.Header, content io.Reader) error {
	name := inUsr(hdr.Name)
	if l.omitted.MatchString(name) {
		return nil
	}
	if strings.HasPrefix(name, certificates) && path.Ext(name) == ".crt" {
		content = io.TeeReader(content, &l.bundle)
	}
	out := &tar.Header{Name: name, Typeflag: hdr.Typeflag, Mode: hdr.Mode & 0o777, Size: hdr.Size, Linkname: hdr.Linkname}
	switch hdr.Typeflag {
	case tar.TypeReg, tar.TypeSymlink:
	case tar.TypeDir:
		out.Mode |= hdr.Mode & 0o1000
	case tar.TypeLink:
		out.Linkname = inUsr(strings.TrimPrefix(path.Clean("/"+hdr.Linkname), "/"))
		if l.omitted.MatchString(out.Linkname) {
			return fmt.Errorf("%s is a link to %s, which is left out", name, out.Linkname)
		}
	default:
		return fmt.Errorf("%s is neither a file nor a folder nor a link", name)
	}
	if hdr.Typeflag == tar.TypeReg {
		var err error
		if content, err = l.edited(out, content); err != nil {
			return err
		}
	}
	return l.add(out, content)
}

// edited content of a file, and its size.
func (l *layerWriter) edited(hdr *tar.Header, content io.Reader) (io.Reader, error) {
	for _, e := range l.edits {
		if !regexp.MustCompile(e.files).MatchString(hdr.Name) {
			continue
		}
		raw, err := io.ReadAll(content)
		if err != nil {
			return nil, err
		}
		if !bytes.Contains(raw, []byte(e.from)) {
			return nil, fmt.Errorf("%s has no %q", hdr.Name, e.from)
		}
		raw = bytes.ReplaceAll(raw, []byte(e.from), []byte(e.to))
		hdr.Size, content = int64(len(raw)), bytes.NewReader(raw)
	}
	return content, nil
}

// inUsr returns the path of a file on a system on which /bin and /lib are links.
func inUsr(name string) string {
	for _, dir := range merged() {
		if strings.HasPrefix(name, dir+"/") {
			return "usr/" + name
		}
	}
	return name
}

func (l *layerWriter) made(f made) error {
	hdr := &tar.Header{Name: f.path, Mode: int64(f.mode.Perm()), Uid: f.owner, Gid: f.owner, Size: int64(len(f.content)), Typeflag: tar.TypeReg}
	if f.mode&fs.ModeSticky != 0 {
		hdr.Mode |= 0o1000
	}
	switch {
	case f.link != "":
		hdr.Typeflag, hdr.Linkname, hdr.Mode = tar.TypeSymlink, f.link, 0o777
	case f.mode.IsDir():
		hdr.Typeflag = tar.TypeDir
	}
	return l.add(hdr, strings.NewReader(f.content))
}

// add writes an entry. Packages share folders, and Debian's base-files has folders and links that are here already; a file that
// comes twice is a mistake that dpkg would refuse, too.
func (l *layerWriter) add(hdr *tar.Header, content io.Reader) error {
	if err := l.parents(path.Dir(hdr.Name)); err != nil {
		return err
	}
	what := string(hdr.Typeflag) + hdr.Linkname
	if had, ok := l.have[hdr.Name]; ok {
		if hdr.Typeflag == tar.TypeReg || (had != what && hdr.Typeflag != tar.TypeDir) {
			return fmt.Errorf("%s is in two packages", hdr.Name)
		}
		return nil
	}
	l.have[hdr.Name] = what
	if hdr.Typeflag == tar.TypeDir {
		hdr.Name += "/"
	}
	hdr.ModTime, hdr.Format = time.Unix(0, 0), tar.FormatPAX
	if err := l.tar.WriteHeader(hdr); err != nil {
		return err
	}
	if hdr.Typeflag != tar.TypeReg {
		return nil
	}
	_, err := io.Copy(l.tar, content)
	return err
}

func (l *layerWriter) parents(dir string) error {
	if dir == "." || l.have[dir] != "" {
		return nil
	}
	return l.add(&tar.Header{Name: dir, Typeflag: tar.TypeDir, Mode: 0o755}, nil)
}

// A layer is a compressed file of the cache with what is known of it, so that it can be named without reading it.
type layer struct {
	file string
	meta layerMeta
}

type layerMeta struct {
	// Digest of the compressed bytes, DiffID of the bytes inside.
	Digest v1.Hash `json:"digest"`
	DiffID v1.Hash `json:"diffID"`
	// Size of the compressed bytes.
	Size int64 `json:"size"`
}

var _ v1.Layer = layer{}

func (l layer) Digest() (v1.Hash, error)             { return l.meta.Digest, nil }
func (l layer) DiffID() (v1.Hash, error)             { return l.meta.DiffID, nil }
func (l layer) Size() (int64, error)                 { return l.meta.Size, nil }
func (l layer) MediaType() (types.MediaType, error)  { return types.OCILayer, nil }
func (l layer) Compressed() (io.ReadCloser, error)   { return os.Open(l.file) }
func (l layer) Uncompressed() (io.ReadCloser, error) { return decompressed(l.file) }

type compressedFile struct {
	*gzip.Reader

	file *os.File
}

func (c compressedFile) Close() error { return errors.Join(c.Reader.Close(), c.file.Close()) }

func decompressed(file string) (io.ReadCloser, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	z, err := gzip.NewReader(f)
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return compressedFile{Reader: z, file: f}, nil
}

// cached returns a layer of the cache, if it is there.
func cached(dir, key string) (layer, bool) {
	l := layer{file: filepath.Join(dir, key+".tar.gz")}
	data, err := os.ReadFile(filepath.Join(dir, key+".json"))
	if err != nil || json.Unmarshal(data, &l.meta) != nil {
		return layer{}, false
	}
	info, err := os.Stat(l.file)
	return l, err == nil && info.Size() == l.meta.Size
}

// keep writes a layer into the cache. What is known of it comes last, so a build that is interrupted leaves nothing that looks
// complete.
func keep(dir, key string, content func(io.Writer) error) (l layer, err error) {
	if err := os.MkdirAll(dir, 0o750); err != nil {
		return layer{}, fmt.Errorf("cannot create the cache of layers: %w", err)
	}
	tmp, err := os.CreateTemp(dir, ".layer-")
	if err != nil {
		return layer{}, fmt.Errorf("cannot create a layer: %w", err)
	}
	defer func() { _ = os.Remove(tmp.Name()) }()

	plain, packed, count := sha256.New(), sha256.New(), &counter{}
	z := gzip.NewWriter(io.MultiWriter(tmp, packed, count))
	if err := errors.Join(content(io.MultiWriter(z, plain)), z.Close(), tmp.Close()); err != nil {
		return layer{}, err
	}
	l = layer{file: filepath.Join(dir, key+".tar.gz"), meta: layerMeta{Digest: digest(packed), DiffID: digest(plain), Size: count.n}}
	meta, err := json.Marshal(l.meta)
	if err != nil {
		return layer{}, err
	}
	if err := os.Rename(tmp.Name(), l.file); err != nil {
		return layer{}, fmt.Errorf("cannot keep a layer: %w", err)
	}
	if err := os.WriteFile(filepath.Join(dir, key+".json"), meta, 0o600); err != nil {
		return layer{}, fmt.Errorf("cannot keep a layer: %w", err)
	}
	return l, nil
}

func digest(h hash.Hash) v1.Hash {
	return v1.Hash{Algorithm: "sha256", Hex: hex.EncodeToString(h.Sum(nil))}
}

type counter struct{ n int64 }

func (c *counter) Write(p []byte) (int, error) {
	c.n += int64(len(p))
	return len(p), nil
}
