// SPDX-License-Identifier: Apache-2.0

package source

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"hash/crc32"
	"net/http"
	"net/url"
	"os"
	"path"
	"strconv"
	"strings"
	"time"

	"golang.org/x/oauth2"
	"golang.org/x/oauth2/google"

	"github.com/capstan-dev/capstan/images/companion/internal/failure"
	"github.com/capstan-dev/capstan/images/companion/internal/model"
	"github.com/capstan-dev/capstan/images/companion/internal/transfer"
)

const (
	// googleEndpoint of Cloud Storage.
	googleEndpoint = "https://storage.googleapis.com"
	// googleScope is all that tokens are for.
	googleScope = "https://www.googleapis.com/auth/devstorage.read_only"
)

// googleBucket is a set of objects of a bucket, by the JSON API.
type googleBucket struct {
	getter

	base        *url.URL
	bucket, key string
}

// newGoogle returns the objects that a URI as in gs://bucket/prefix names: all below the prefix and a slash, or the one object of
// that name.
func newGoogle(ctx context.Context, uri string, o Options) (Source, error) {
	bucket, key, _ := strings.Cut(strings.TrimPrefix(uri, "gs://"), "/")
	if bucket == "" || strings.Trim(key, "/") == "" {
		return nil, invalid(uri, "it should look like gs://bucket/prefix")
	}
	base, err := endpointOf(o, googleEndpoint, "Google Cloud Storage")
	if err != nil {
		return nil, err
	}
	if o.Credentials.AccessKeyID != "" {
		// Keys for interoperability: the same objects by the protocol of S3.
		o.Endpoint, o.google = base.String(), true
		if o.Region == "" && o.Credentials.Region == "" {
			o.Region = "auto"
		}
		return newS3(ctx, "s3://"+bucket+"/"+key, o)
	}
	client, err := newClient(&o.Credentials, time.Minute)
	if err != nil {
		return nil, err
	}
	b := &googleBucket{base: base.JoinPath("storage/v1/b", bucket, "o"), bucket: bucket, key: strings.TrimRight(key, "/")}
	b.getter = getter{client: client, sign: o.Credentials.sign, explain: googleSays, encoding: "gzip"}
	tokens, err := googleTokens(ctx, client, o, base.String() == googleEndpoint)
	if err != nil {
		return nil, err
	}
	if tokens != nil {
		b.authorize = bearer(tokens)
	}
	return &files{o: o.Options, list: b.all}, nil
}

// googleTokens for a service account key, or for who the pod is to Google. None if there is neither.
func googleTokens(ctx context.Context, client *http.Client, o Options, isGoogle bool) (oauth2.TokenSource, error) {
	c := &o.Credentials
	if c.ServiceAccountKey != "" {
		config, err := google.JWTConfigFromJSON([]byte(c.ServiceAccountKey), googleScope)
		// What the decoder says could quote the key.
		if err != nil {
			return nil, failure.New(failure.Invalid, "the key serviceAccountKey of the credentials is not the JSON of a service account key", remedySecret)
		}
		return config.TokenSource(context.WithValue(ctx, oauth2.HTTPClient, client)), nil
	}
	given := os.Getenv("GOOGLE_APPLICATION_CREDENTIALS") != ""
	if c.Token != "" || c.Username != "" || !isGoogle && !given {
		return nil, nil //nolint:nilnil // Nobody, or who the credentials say.
	}
	limit, cancel := context.WithTimeout(ctx, 20*time.Second)
	defer cancel()
	found, err := google.FindDefaultCredentials(limit, googleScope)
	if err == nil {
		_, err = found.TokenSource.Token()
	}
	if err == nil {
		// This source of tokens lives as long as the download.
		found, err = google.FindDefaultCredentials(ctx, googleScope)
	}
	switch {
	case err == nil:
		return found.TokenSource, nil
	case given:
		return nil, &failure.Failure{
			Reason: failure.Forbidden, Cause: "Google does not give the pod's ServiceAccount a token", Err: err,
			Remedy: "correct its rights, or name a Secret in spec.model.credentials",
		}
	}
	return nil, nil //nolint:nilnil // The pod is nobody to Google.
}

// bearer of tokens that are renewed before they expire.
func bearer(tokens oauth2.TokenSource) func(r *http.Request) error {
	return func(r *http.Request) error {
		token, err := tokens.Token()
		if err != nil {
			return noToken(err)
		}
		token.SetAuthHeader(r)
		return nil
	}
}

// noToken explains why there is none, by the code in the answer of the server.
func noToken(err error) error {
	var refusal *oauth2.RetrieveError
	if !errors.As(err, &refusal) || refusal.Response == nil {
		return unanswered(err)
	}
	status := refusal.Response.StatusCode
	if status == http.StatusTooManyRequests || status >= http.StatusInternalServerError {
		return &transfer.TemporaryError{Err: fmt.Errorf("cannot get a token of Google: %d", status), After: retryAfter(refusal.Response.Header)}
	}
	cause := "Google does not accept the service account key"
	var answer struct {
		Error string `json:"error"`
	}
	if json.Unmarshal(refusal.Body, &answer) == nil && answer.Error != "" {
		cause += ": " + answer.Error[:min(len(answer.Error), 100)]
	}
	return failure.New(failure.Forbidden, cause, remedySecret)
}

// A googleObject as Cloud Storage lists it. Numbers of 64 bits are text.
type googleObject struct {
	Name       string `json:"name"`
	Size       int64  `json:"size,string"`
	Generation string `json:"generation"`
	CRC32C     string `json:"crc32c"`
}

// all objects of the model.
func (b *googleBucket) all(ctx context.Context) ([]transfer.File, error) {
	found, refusal := b.below(ctx)
	if refusal != nil && !failure.Is(refusal, failure.Forbidden) || len(found) > 0 {
		return found, refusal
	}
	// A user that may not list may still get an object by its name.
	var one googleObject
	name := path.Base(b.key)
	header, err := b.json(ctx, b.address(b.key, nil), strconv.Quote(b.key)+" of bucket "+strconv.Quote(b.bucket), &one)
	switch {
	case err == nil && header != nil && one.Name == b.key && model.ValidPath(name) == nil:
		return []transfer.File{b.file(one, name)}, nil
	case refusal != nil:
		return nil, refusal
	case err != nil && !failure.Is(err, failure.NotFound):
		return nil, err
	}
	return nil, failure.New(failure.NotFound, fmt.Sprintf("bucket %q has no object %q and none below it", b.bucket, b.key),
		"correct spec.model.uri, or upload the model")
}

// below returns the objects whose names begin with the model's and a slash.
func (b *googleBucket) below(ctx context.Context) ([]transfer.File, error) {
	var found []transfer.File
	query := url.Values{"prefix": {b.key + "/"}, "fields": {"items(name,size,generation,crc32c),nextPageToken"}}
	for {
		var page struct {
			Items []googleObject `json:"items"`
			Next  string         `json:"nextPageToken"`
		}
		at := *b.base
		at.RawQuery = query.Encode()
		header, err := b.json(ctx, at.String(), "bucket "+strconv.Quote(b.bucket), &page)
		if err != nil {
			return nil, err
		}
		if header == nil {
			return nil, failure.New(failure.Invalid, strconv.Quote(b.base.Host)+" does not answer as Google Cloud Storage does",
				"correct the endpoint in spec.model.uri or in the credentials")
		}
		for _, o := range page.Items {
			name, ok := strings.CutPrefix(o.Name, b.key+"/")
			if strings.HasSuffix(o.Name, "/") && o.Size == 0 {
				continue // consoles make an object for a folder
			}
			if !ok || model.ValidPath(name) != nil {
				return nil, failure.New(failure.Invalid,
					fmt.Sprintf("object %s cannot be a file of the model: a step is empty, . or .., or has a control character or a backslash", strconv.Quote(o.Name)),
					"rename or delete it")
			}
			found = append(found, b.file(o, name))
		}
		if err := model.Countable(len(found)); err != nil {
			return nil, err
		}
		if page.Next == "" || page.Next == query.Get("pageToken") {
			return found, nil
		}
		query.Set("pageToken", page.Next)
	}
}

// address of an object.
func (b *googleBucket) address(name string, query url.Values) string {
	// A slash in a name is no step of the path.
	at := *b.base
	at.RawPath = b.base.EscapedPath() + "/" + url.PathEscape(name)
	at.Path = b.base.Path + "/" + name
	at.RawQuery = query.Encode()
	return at.String()
}

// file returns how to download a generation of an object, and no other.
func (b *googleBucket) file(o googleObject, name string) transfer.File {
	address := b.address(o.Name, url.Values{"alt": {"media"}, "generation": {o.Generation}})
	f := transfer.File{
		Path: name, Size: o.Size,
		Open: b.opener(address, fmt.Sprintf("%q of bucket %q", o.Name, b.bucket), o.Size),
	}
	if o.CRC32C != "" {
		f.Checks = func() []transfer.Check {
			return []transfer.Check{{Name: "CRC32C", Want: o.CRC32C, Hash: func() hash.Hash { return crc32.New(crc32.MakeTable(crc32.Castagnoli)) }}}
		}
	}
	return f
}

// googleSays is the message of an error.
func googleSays(body []byte) string {
	var answer struct {
		Error struct {
			Message string `json:"message"`
		} `json:"error"`
	}
	if json.Unmarshal(body, &answer) != nil {
		// Downloads answer with a line of text.
		if line := strings.TrimSpace(string(body)); len(line) < 200 && !strings.ContainsAny(line, "<\n{") {
			return strings.ToValidUTF8(line, "")
		}
		return ""
	}
	return strings.ToValidUTF8(answer.Error.Message[:min(len(answer.Error.Message), 300)], "")
}
