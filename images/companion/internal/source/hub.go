// SPDX-License-Identifier: Apache-2.0

package source

import (
	"context"
	"crypto/sha1" //nolint:gosec // Git's own checksum of files that are not large. It finds accidents.
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"hash"
	"io"
	"net/http"
	"net/url"
	"path"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/capstan-dev/capstan/images/companion/internal/failure"
	"github.com/capstan-dev/capstan/images/companion/internal/model"
	"github.com/capstan-dev/capstan/images/companion/internal/transfer"
)

// hubEndpoint is the hub of Hugging Face.
const hubEndpoint = "https://huggingface.co"

// hubForm of a URI: organisation and repository, revision, path. A revision with slashes is one that the hub makes itself.
var hubForm = regexp.MustCompile(`^hf://([^/@?#]+/[^/@?#]+)(?:@((?:refs/(?:pr|convert)/)?[^/@?#]+))?(?:/([^@?#]*[^/@?#]))?$`)

// commit of Git.
var commit = regexp.MustCompile(`^[0-9a-f]{40}$`)

// hub is a repository of the Hugging Face hub at a revision.
type hub struct {
	getter

	base *url.URL
	// repository as in organisation/name, its revision, and the path of the model in it, "" for all of it.
	repository, revision, path string
	o                          Options
}

// newHub returns the files that a URI as in hf://organisation/repository@revision/path names.
func newHub(uri string, o Options) (Source, error) {
	parts := hubForm.FindStringSubmatch(uri)
	if parts == nil || strings.Contains(uri, "..") {
		return nil, invalid(uri, "it should look like hf://organisation/repository@revision")
	}
	base, err := endpointOf(o, hubEndpoint, "a hub")
	if err != nil {
		return nil, err
	}
	client, err := newClient(&o.Credentials, time.Minute)
	if err != nil {
		return nil, err
	}
	h := &hub{
		getter:     getter{client: client, sign: o.Credentials.sign, explain: hubSays},
		base:       base,
		repository: parts[1], revision: parts[2], path: parts[3], o: o,
	}
	if h.revision == "" {
		h.revision = "main"
	}
	return &files{o: o.Options, list: h.all}, nil
}

// all files of the model, at the commit that the revision names now.
func (h *hub) all(ctx context.Context) ([]transfer.File, error) {
	at, err := h.commit(ctx)
	if err != nil {
		return nil, err
	}
	var found []transfer.File
	next := h.base.JoinPath("api/models", h.repository, "tree", at)
	next.RawQuery = "recursive=true"
	for next != nil {
		var entries []hubEntry
		var header http.Header
		if header, err = h.decode(ctx, next, h.what(""), &entries); err != nil {
			return nil, err
		}
		for _, e := range entries {
			f, ok, err := h.file(e, at)
			if err != nil {
				return nil, err
			}
			if ok {
				found = append(found, f)
			}
		}
		if err := model.Countable(len(found)); err != nil {
			return nil, err
		}
		if next, err = h.next(next, header); err != nil {
			return nil, err
		}
	}
	if len(found) == 0 {
		return nil, failure.New(failure.NotFound, h.what(h.path)+" has no files at revision "+strconv.Quote(h.revision),
			"correct the repository, revision or path in spec.model.uri")
	}
	return found, nil
}

// commit that the revision names. What is downloaded stays at it when a branch moves.
func (h *hub) commit(ctx context.Context) (string, error) {
	if commit.MatchString(h.revision) {
		return h.revision, nil
	}
	var info struct {
		SHA string `json:"sha"`
	}
	at := h.base.JoinPath("api/models", h.repository, "revision", url.PathEscape(h.revision))
	if _, err := h.decode(ctx, at, fmt.Sprintf("revision %q of %s", h.revision, h.what("")), &info); err != nil {
		return "", err
	}
	if !commit.MatchString(info.SHA) {
		return "", h.noHub()
	}
	h.o.Log.Info("resolved", "repository", h.repository, "revision", h.revision, "commit", info.SHA)
	return info.SHA, nil
}

// A hubEntry is a file or folder as the hub lists it.
type hubEntry struct {
	Type string `json:"type"`
	Path string `json:"path"`
	Size int64  `json:"size"`
	// OID is Git's SHA-1 of the file, or of the pointer to a large one.
	OID string `json:"oid"`
	LFS *struct {
		// OID is the SHA-256 of the content.
		OID  string `json:"oid"`
		Size int64  `json:"size"`
	} `json:"lfs"`
}

// file of the model, if the entry is one.
func (h *hub) file(e hubEntry, at string) (transfer.File, bool, error) {
	name := e.Path
	if h.path != "" {
		below, ok := strings.CutPrefix(e.Path, h.path)
		switch {
		case !ok, below != "" && below[0] != '/':
			return transfer.File{}, false, nil
		case below == "":
			name = path.Base(e.Path)
		default:
			name = below[1:]
		}
	}
	if e.Type != "file" {
		return transfer.File{}, false, nil
	}
	if err := model.ValidPath(name); err != nil || model.ValidPath(e.Path) != nil {
		return transfer.File{}, false, invalid("hf://"+h.repository, fmt.Sprintf("%q cannot be a file of a model", e.Path))
	}
	size := e.Size
	var list []transfer.Check
	switch {
	case e.LFS != nil:
		size = e.LFS.Size
		list = hexCheck("SHA256", e.LFS.OID, sha256.Size, sha256.New)
	default:
		list = hexCheck("Git SHA1", e.OID, sha1.Size, func() hash.Hash {
			sum := sha1.New()                            //nolint:gosec // See above.
			_, _ = fmt.Fprintf(sum, "blob %d\x00", size) // A hash never fails to write.
			return sum
		})
	}
	address := h.base.JoinPath(append([]string{h.repository, "resolve", at}, strings.Split(escaped(e.Path), "/")...)...).String()
	return transfer.File{
		Path: name, Size: size,
		Open:   h.opener(address, h.what(e.Path), size),
		Checks: func() []transfer.Check { return list },
	}, true, nil
}

// hexCheck of a checksum that is written in hexadecimal digits; none if it is not.
func hexCheck(name, sum string, size int, fn func() hash.Hash) []transfer.Check {
	raw, err := hex.DecodeString(sum)
	if err != nil || len(raw) != size {
		return nil
	}
	return []transfer.Check{{Name: name, Hash: fn, Want: base64.StdEncoding.EncodeToString(raw)}}
}

// next page of a list, which the header Link names, on the same hub.
func (h *hub) next(at *url.URL, header http.Header) (*url.URL, error) {
	for link := range strings.SplitSeq(header.Get("Link"), ",") {
		target, parameters, _ := strings.Cut(strings.TrimSpace(link), ";")
		if !strings.Contains(parameters, `rel="next"`) {
			continue
		}
		u, err := at.Parse(strings.Trim(target, "<> "))
		if err != nil || u.Host != h.base.Host || u.Scheme != h.base.Scheme || u.String() == at.String() {
			return nil, h.noHub()
		}
		return u, nil
	}
	return nil, nil //nolint:nilnil // There is no next page.
}

// decode what the hub answers, and return its header.
func (h *hub) decode(ctx context.Context, at *url.URL, what string, into any) (http.Header, error) {
	header, err := h.json(ctx, at.String(), what, into)
	if err != nil {
		return nil, err
	}
	if header == nil {
		return nil, h.noHub()
	}
	return header, nil
}

func (h *hub) noHub() error {
	return failure.New(failure.Invalid, strconv.Quote(h.base.Host)+" does not answer as a Hugging Face hub does",
		"correct the endpoint in spec.model.uri or in the credentials")
}

// what is downloaded, for people.
func (h *hub) what(name string) string {
	return strconv.Quote(strings.TrimRight("hf://"+h.repository+"/"+name, "/"))
}

// hubSays is the message of an error.
func hubSays(body []byte) string {
	var answer struct {
		Error string `json:"error"`
	}
	if json.Unmarshal(body, &answer) != nil {
		return ""
	}
	return strings.ToValidUTF8(answer.Error[:min(len(answer.Error), 300)], "")
}

// endpointOf a server: of the URI, of the credentials, or the usual one.
func endpointOf(o Options, usual, server string) (*url.URL, error) {
	endpoint := usual
	for _, e := range []string{o.Credentials.Endpoint, o.Endpoint} {
		if e != "" {
			endpoint = e
		}
	}
	base, err := url.Parse(strings.TrimRight(endpoint, "/"))
	if err != nil || base.Host == "" || base.User != nil || base.RawQuery != "" || !web(base.Scheme) {
		return nil, failure.New(failure.Invalid, fmt.Sprintf("endpoint %s is not the URL of %s", strconv.Quote(endpoint), server),
			"correct ?endpoint= in spec.model.uri, or the key endpoint of the credentials")
	}
	return base, nil
}

// opener of a file by its URL.
func (g *getter) opener(address, what string, size int64) transfer.Open {
	return func(ctx context.Context, offset int64) (io.ReadCloser, error) {
		resp, err := g.get(ctx, address, what, offset, size)
		if err != nil {
			return nil, err
		}
		return resp.Body, nil
	}
}

// json that a server answers, and the header of its answer; no header if it is none.
func (g *getter) json(ctx context.Context, address, what string, into any) (http.Header, error) {
	resp, err := g.get(ctx, address, what, 0, -1)
	if err != nil {
		return nil, err
	}
	defer func() { _ = resp.Body.Close() }()
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxListing))
	if err != nil {
		return nil, transfer.Temporary(err)
	}
	if json.Unmarshal(body, into) != nil {
		return nil, nil //nolint:nilnil // The caller knows what the server should be.
	}
	return resp.Header, nil
}
