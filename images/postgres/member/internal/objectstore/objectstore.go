// SPDX-License-Identifier: Apache-2.0

// Package objectstore reads and writes small objects beside the backups that pgBackRest keeps. Of the SDK it uses the signer
// only: two requests do not need its client, which would be in every image of a member.
package objectstore

import (
	"bytes"
	"context"
	"crypto/md5" //nolint:gosec // Buckets that are locked ask for it.
	"crypto/sha256"
	"crypto/tls"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/http"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"

	"github.com/capstan-dev/capstan/apis/members/pgmember"
	"github.com/capstan-dev/capstan/images/member/certificate"
	"github.com/capstan-dev/capstan/images/member/reach"
	"github.com/capstan-dev/capstan/images/member/vault"
	"github.com/capstan-dev/capstan/images/member/web"
	"github.com/capstan-dev/capstan/images/postgres/member/internal/pgbackrest"
)

// limit of one call.
const limit = 30 * time.Second

// Path of objects at the host that serves a volume.
const Path = "/objects/"

// A Store that objects are in: a bucket, or a volume behind the host that serves it.
type Store struct {
	repository pgbackrest.Repository
	client     *http.Client
	keys       aws.CredentialsProvider
	place      string
}

func store(r pgbackrest.Repository, c *http.Client) Store { return Store{r, c, r.Keys(c), r.Place()} }

// Open a store. Nothing is sent to the server yet.
func Open(r pgbackrest.Repository) (*Store, error) {
	config, err := configOf(r)
	if err != nil {
		return nil, err
	}
	transport := &http.Transport{TLSClientConfig: config, DisableKeepAlives: true, DialContext: reach.Dial}
	if r.Served == nil {
		transport.Proxy = http.ProxyFromEnvironment
	}
	return new(store(r, &http.Client{Timeout: limit, Transport: transport})), nil
}

// Configured is the store beside the backups of the Database.
func Configured(s pgmember.Backup) (*Store, error) {
	r, err := pgbackrest.Read(pgmember.FolderBackup, s.Repository)
	if err != nil {
		return nil, err
	}
	return Open(r)
}

// RestorePoints is the object with the restore points of all stanzas of the repository at a path. It is the only memory of them:
// like backups, it outlasts members, volumes and the Database.
func RestorePoints(path string) string { return pgmember.Object(path, "restore-points") }

// Verification is the object with the results of verifications of a stanza. The leader reads them there, because the pod that
// verifies reaches nothing else.
func Verification(s pgmember.Backup) string { return pgmember.Object(s.Path, "verification/"+s.Stanza) }

// configOf the connections to the server of a repository.
func configOf(r pgbackrest.Repository) (*tls.Config, error) {
	if r.Served != nil {
		return r.Served.TLS.Client()
	}
	config := &tls.Config{MinVersion: tls.VersionTLS12}
	if r.CA == "" {
		return config, nil
	}
	var err error
	if config.RootCAs, err = certificate.Authorities(r.CA); err != nil {
		return nil, fmt.Errorf("cannot use ca.crt of the bucket's connection Secret: %w: correct it", err)
	}
	return config, nil
}

// Read the JSON of an object into a value. It reports whether there is such an object; without one the value stays.
func (b *Store) Read(ctx context.Context, key string, into any) (bool, error) {
	body, status, err := b.call(ctx, http.MethodGet, key, nil)
	switch {
	case err != nil:
		return false, fmt.Errorf("cannot read %s in %s: %w", key, b.place, err)
	case status == http.StatusNotFound && !bytes.Contains(body, []byte("NoSuchBucket")):
		return false, nil
	case status != http.StatusOK:
		return false, fmt.Errorf("cannot read %s in %s: %s", key, b.place, refusal(status, body))
	}
	if err := json.Unmarshal(body, into); err != nil {
		return false, fmt.Errorf("cannot understand %s in %s: %w", key, b.place, err)
	}
	return true, nil
}

// Write a value as JSON to an object.
func (b *Store) Write(ctx context.Context, key string, value any) error {
	raw, err := json.Marshal(value)
	if err != nil {
		return fmt.Errorf("cannot write %s in %s: %w", key, b.place, err)
	}
	body, status, err := b.call(ctx, http.MethodPut, key, raw)
	if err != nil {
		return fmt.Errorf("cannot write %s in %s: %w", key, b.place, err)
	}
	if status/100 != 2 {
		return fmt.Errorf("cannot write %s in %s: %s", key, b.place, refusal(status, body))
	}
	return nil
}

func (b *Store) call(ctx context.Context, method, key string, content []byte) ([]byte, int, error) {
	req, err := b.request(ctx, method, strings.TrimLeft(key, "/"), content)
	if err != nil {
		return nil, 0, err
	}
	status, body, err := web.Do(b.client, req)
	if err != nil {
		return nil, 0, plain(err)
	}
	return body, status, nil
}

// request of an object, signed if it is one of a bucket.
func (b *Store) request(ctx context.Context, method, key string, content []byte) (*http.Request, error) {
	return b.asking(ctx, method, key, "", nil, content)
}

// asking is a request with a query and headers of its own.
func (b *Store) asking(ctx context.Context, method, key, query string, header http.Header, content []byte) (*http.Request, error) {
	r := b.repository
	to := url.URL{Scheme: "https", Host: net.JoinHostPort(r.Host, r.Port), Path: "/" + r.Bucket + "/" + key, RawPath: "/" + r.Bucket + "/" + escaped(key), RawQuery: query}
	if r.Served != nil {
		to = url.URL{Scheme: "https", Host: net.JoinHostPort(r.Served.Server, strconv.Itoa(pgmember.PortRepository)), Path: Path + key}
	}
	req, err := http.NewRequestWithContext(ctx, method, to.String(), bytes.NewReader(content))
	if err != nil || r.Served != nil {
		return req, err
	}
	maps.Copy(req.Header, header)
	sum := sha256.Sum256(content)
	hash := hex.EncodeToString(sum[:])
	req.Header.Set("X-Amz-Content-Sha256", hash)
	if method == http.MethodPut {
		digest := md5.Sum(content) //nolint:gosec // It is no secret.
		req.Header.Set("Content-Md5", base64.StdEncoding.EncodeToString(digest[:]))
		req.Header.Set("Content-Type", "application/json")
	}
	keys, err := b.keys.Retrieve(ctx)
	if err != nil {
		return nil, plain(err)
	}
	signer := v4.NewSigner(func(o *v4.SignerOptions) { o.DisableURIPathEscaping = true })
	return req, signer.SignHTTP(ctx, keys, req, hash, "s3", r.Region, time.Now())
}

// plain is why a call did not reach the server, without what is another each time: a report changes only when a fact
// does.
func plain(err error) error {
	var (
		outer *url.Error
		inner *net.OpError
	)
	if errors.As(err, &outer) && outer.Timeout() {
		return errors.New("the server does not answer in time")
	}
	if errors.As(err, &inner) {
		return fmt.Errorf("cannot %s: %w", inner.Op, inner.Err)
	}
	if outer != nil {
		return outer.Err
	}
	return err
}

// Answers of S3 servers are XML, and a code in them says most.
var code = regexp.MustCompile(`<Code>([A-Za-z]{1,64})</Code>`)

// refusal of a server in words. The host of a volume says why itself.
func refusal(status int, body []byte) string {
	if said := vault.Said(body); said != "" {
		return said
	}
	if m := code.FindSubmatch(body); m != nil {
		return fmt.Sprintf("the server refuses it: %s (%d)", m[1], status)
	}
	return fmt.Sprintf("the server answers %d %s", status, http.StatusText(status))
}
