// SPDX-License-Identifier: Apache-2.0

package source

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io"
	"log/slog"
	"net/http"
	"path"
	"runtime"
	"strconv"
	"strings"
	"time"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/remote/transport"

	"github.com/capstan-dev/capstan/images/companion/internal/failure"
	"github.com/capstan-dev/capstan/images/companion/internal/model"
	"github.com/capstan-dev/capstan/images/companion/internal/transfer"
)

// image is an image, or an artifact that is kept like one.
type image struct {
	ref    name.Reference
	auth   authn.Authenticator
	base   *http.Transport
	o      transfer.Options
	max    int64
	log    *slog.Logger
	layers []layer
	blobs  getter
}

// A layer of an image.
type layer struct {
	v1.Descriptor

	// file is the layer's name if it is one file as it is. Otherwise it is an archive.
	file string
	// changes reports that the archive says what changes to the layers below, as archives of container images do.
	changes bool
}

// newOCI returns the image that a reference names, as in oci://registry.example.org/models/reco@sha256:….
func newOCI(uri string, o Options) (Source, error) {
	ref, err := name.ParseReference(strings.TrimPrefix(uri, "oci://"))
	if err != nil || !strings.HasPrefix(uri, "oci://") {
		return nil, invalid(uri, "it should look like oci://registry/repository:tag or oci://registry/repository@sha256:…")
	}
	base, err := newTransport(&o.Credentials, time.Minute)
	if err != nil {
		return nil, err
	}
	return &image{ref: ref, auth: o.Credentials.registry(ref.Context().RegistryStr()), base: base, o: o.Options, max: o.MaxSize, log: o.Log}, nil
}

// Size of all layers as they are kept, which is the size of the model unless they are compressed.
func (i *image) Size(ctx context.Context) (int64, bool, error) {
	if err := i.o.Do(ctx, i.look); err != nil {
		return 0, false, err
	}
	size, exact := int64(0), true
	for _, l := range i.layers {
		size += l.Size
		exact = exact && l.file != ""
	}
	return size, exact, nil
}

// look at what the image consists of.
func (i *image) look(ctx context.Context) error {
	repository := i.ref.Context()
	signed, err := transport.NewWithContext(ctx, repository.Registry, i.auth, i.base, []string{repository.Scope(transport.PullScope)})
	if err != nil {
		return i.explain(err)
	}
	found, err := remote.Get(i.ref, remote.WithContext(ctx), remote.WithAuth(i.auth), remote.WithTransport(i.base),
		remote.WithPlatform(v1.Platform{OS: "linux", Architecture: runtime.GOARCH}), remote.WithRetryBackoff(remote.Backoff{Steps: 1}))
	if err != nil {
		return i.explain(err)
	}
	manifest := found.Manifest
	if found.MediaType.IsIndex() {
		one, err := found.Image()
		if err == nil {
			manifest, err = one.RawManifest()
		}
		if err != nil {
			return i.explain(err)
		}
	}
	parsed, err := v1.ParseManifest(bytes.NewReader(manifest))
	if err != nil {
		return invalid(i.ref.String(), "its manifest cannot be read")
	}
	i.layers = nil
	for _, d := range parsed.Layers {
		l, err := classify(d, parsed.Config.MediaType.IsConfig())
		if err != nil {
			return invalid(i.ref.String(), err.Error())
		}
		i.layers = append(i.layers, l)
	}
	i.blobs = getter{client: &http.Client{Transport: signed}, sign: func(*http.Request) {}, explain: registrySays}
	return nil
}

// classify says what becomes of a layer: of container images, of artifacts as ORAS makes them, of ModelPacks, of ModelKits.
func classify(d v1.Descriptor, container bool) (layer, error) {
	kind := string(d.MediaType)
	if container {
		return layer{Descriptor: d, changes: true}, nil
	}
	title := d.Annotations["org.opencontainers.image.title"]
	for _, key := range []string{"org.cncf.model.filepath", "org.cnai.model.filepath"} {
		if title == "" {
			title = d.Annotations[key]
		}
	}
	generic := strings.HasPrefix(kind, "application/vnd.oci.image.layer.")
	archive := strings.HasSuffix(kind, ".tar") || strings.Contains(kind, ".tar+") || strings.HasSuffix(kind, ".tar.gzip")
	switch {
	case d.Annotations["io.deis.oras.content.unpack"] == "true", archive && (!generic || title == ""):
		return layer{Descriptor: d}, nil
	case title == "":
		return layer{}, fmt.Errorf("a layer of type %s has no name: there is no annotation org.opencontainers.image.title", strconv.Quote(kind))
	case model.ValidPath(path.Clean(title)) != nil:
		return layer{}, fmt.Errorf("a layer is called %s, which is no path within a folder", strconv.Quote(title))
	}
	return layer{Descriptor: d, file: path.Clean(title)}, nil
}

// Fetch all layers: first those that are files, then archives one after another, because the later ones change what is there.
func (i *image) Fetch(ctx context.Context, folder *model.Folder) error {
	var whole []transfer.File
	for _, l := range i.layers {
		if l.file == "" {
			continue
		}
		sum, err := hex.DecodeString(l.Digest.Hex)
		if err != nil || l.Digest.Algorithm != "sha256" {
			return invalid(i.ref.String(), "a layer has another digest than sha256")
		}
		check := transfer.Check{Name: "SHA256", Hash: sha256.New, Want: base64.StdEncoding.EncodeToString(sum)}
		whole = append(whole, transfer.File{
			Path: l.file, Size: l.Size, Open: i.open(l), Checks: func() []transfer.Check { return []transfer.Check{check} },
		})
	}
	if err := transfer.Files(ctx, folder, whole, i.o); err != nil {
		return err
	}
	u := &unpacker{folder: folder, log: i.log, limit: i.max, buf: make([]byte, 256<<10)}
	for _, l := range i.layers {
		if l.file != "" {
			continue
		}
		if err := i.unpack(ctx, u, l); err != nil {
			return err
		}
	}
	return nil
}

// unpack a layer while it comes, and see in the end that it was the right one.
func (i *image) unpack(ctx context.Context, u *unpacker, l layer) error {
	if l.Digest.Algorithm != "sha256" {
		return invalid(i.ref.String(), "a layer has another digest than sha256")
	}
	s := transfer.NewStream(ctx, i.o.Retry, i.open(l), l.Size, i.o.Progress.Count)
	defer func() { _ = s.Close() }()
	sum := sha256.New()
	compressed := io.TeeReader(s, sum)
	content, err := decompress(compressed)
	if err != nil {
		return i.broken(l, err)
	}
	defer func() { _ = content.Close() }()
	if err := u.unpack(content, l.changes); err != nil {
		return i.broken(l, err)
	}
	// What follows the archive belongs to the layer, too.
	if _, err := io.CopyBuffer(struct{ io.Writer }{io.Discard}, struct{ io.Reader }{compressed}, u.buf); err != nil {
		return err
	}
	return i.verify(l, sum)
}

func (i *image) verify(l layer, sum hash.Hash) error {
	if got := hex.EncodeToString(sum.Sum(nil)); got != l.Digest.Hex {
		return failure.New(failure.DigestMismatch, fmt.Sprintf("a layer of %s has digest sha256:%s instead of %s", i.ref, got, l.Digest),
			"push the image again, or look at what is between the registry and the cluster")
	}
	return nil
}

// broken explains why a layer cannot be unpacked.
func (i *image) broken(l layer, err error) error {
	var archive *archiveError
	if !errors.As(err, &archive) {
		return err
	}
	return invalid(i.ref.String(), fmt.Sprintf("a layer of type %s: %s", strconv.Quote(string(l.MediaType)), archive))
}

func (i *image) open(l layer) transfer.Open {
	r := i.ref.Context()
	address := fmt.Sprintf("%s://%s/v2/%s/blobs/%s", r.Scheme(), r.RegistryStr(), r.RepositoryStr(), l.Digest)
	return func(ctx context.Context, offset int64) (io.ReadCloser, error) {
		resp, err := i.blobs.get(ctx, address, "a layer of "+i.ref.String(), offset, l.Size)
		if err != nil {
			return nil, i.explain(err)
		}
		return resp.Body, nil
	}
}

// explain an error of the registry or of who gives tokens for it.
func (i *image) explain(err error) error {
	// A token may also be refused in the middle of a download.
	var answer *transport.Error
	if errors.As(err, &answer) {
		says := make([]string, 0, len(answer.Errors))
		for _, d := range answer.Errors {
			says = append(says, strings.TrimSpace(string(d.Code)+" "+d.Message))
		}
		return refused(strconv.Quote(i.ref.String()), answer.StatusCode, strings.Join(says, ", "), 0)
	}
	var known *failure.Failure
	var temporary *transfer.TemporaryError
	if errors.As(err, &known) || errors.As(err, &temporary) {
		return err
	}
	if strings.Contains(err.Error(), "no child with platform") {
		return invalid(i.ref.String(), "it has nothing for linux/"+runtime.GOARCH)
	}
	if strings.Contains(err.Error(), "does not match requested digest") {
		return failure.New(failure.DigestMismatch, fmt.Sprintf("%s has another digest than its reference says", i.ref), "correct the reference")
	}
	return unanswered(err)
}

// registrySays is what a registry says for itself.
func registrySays(body []byte) string {
	var answer transport.Error
	if err := json.Unmarshal(body, &answer); err != nil || len(answer.Errors) == 0 {
		return ""
	}
	return strings.TrimSpace(string(answer.Errors[0].Code) + " " + answer.Errors[0].Message)
}
