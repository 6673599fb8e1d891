// SPDX-License-Identifier: Apache-2.0

// Package source downloads models from where they are kept: object storage, a model registry, a registry of images, a hub, a web server.
package source

import (
	"context"
	"fmt"
	"log/slog"
	"net/url"
	"strconv"
	"strings"

	"github.com/capstan-dev/capstan/images/companion/internal/failure"
	"github.com/capstan-dev/capstan/images/companion/internal/model"
	"github.com/capstan-dev/capstan/images/companion/internal/transfer"
)

// A Source has a model.
type Source interface {
	// Size of the model in bytes, at least, as the server reports; 0 if it does not. It finds out what there is.
	Size(ctx context.Context) (size int64, exact bool, err error)
	// Fetch the model into a folder. Size was called before.
	Fetch(ctx context.Context, folder *model.Folder) error
}

// Options of a Source.
type Options struct {
	transfer.Options

	// Endpoint and Region from the command line; they come before the ones in the credentials.
	Endpoint, Region string
	Credentials      Credentials
	// MaxSize of the model in bytes, 0 if unknown. More is not unpacked.
	MaxSize int64
	Log     *slog.Logger

	// Registered reports that a model registry named the source, and not the spec. Then token, username and password are sent to
	// two servers only: the one at the URL Trusted, which the spec names, and the one that the credentials name as their endpoint.
	Registered bool
	Trusted    string

	// withheld reports that credentials there are were not sent.
	withheld bool

	// google reports that S3's protocol is spoken with Google.
	google bool
}

// New returns the Source that a URI names.
func New(ctx context.Context, uri string, o Options) (Source, error) {
	scheme, _, _ := strings.Cut(uri, ":")
	u, err := url.Parse(uri)
	if err != nil && scheme != "s3" && scheme != "gs" && scheme != schemeOCI {
		return nil, invalid(uri, "it is no URI")
	}
	if server, ok := serverOf(scheme, uri, o); ok {
		o = o.toward(server)
	}
	src, err := open(ctx, scheme, uri, u, o)
	if err == nil && o.withheld {
		src = unsigned{src}
	}
	return src, err
}

// open the source of a scheme.
func open(ctx context.Context, scheme, uri string, u *url.URL, o Options) (Source, error) {
	switch scheme {
	case "s3":
		return newS3(ctx, uri, o)
	case "mlflow-artifacts":
		return newMLflow(u, o)
	case schemeOCI:
		return newOCI(uri, o)
	case "gs":
		return newGoogle(ctx, uri, o)
	case "hf":
		return newHub(uri, o)
	case schemeHTTPS, schemeHTTP:
		return newWeb(u, o)
	}
	return nil, invalid(uri, "models come from s3://, gs://, hf://, https://, http://, mlflow-artifacts: and oci://")
}

func invalid(uri, why string) error {
	return failure.New(failure.Invalid, fmt.Sprintf("cannot download from %s: %s", strconv.Quote(uri), why),
		"correct spec.model or, of a version of the model registry, its source")
}

// files is a Source that knows all its files before it downloads one.
type files struct {
	list func(ctx context.Context) ([]transfer.File, error)
	have []transfer.File
	o    transfer.Options
}

// Size of all files.
func (f *files) Size(ctx context.Context) (int64, bool, error) {
	err := f.o.Do(ctx, func(ctx context.Context) (err error) {
		f.have, err = f.list(ctx)
		return err
	})
	if err != nil {
		return 0, false, err
	}
	size, exact := int64(0), true
	for i := range f.have {
		size += max(0, f.have[i].Size)
		exact = exact && f.have[i].Size >= 0
	}
	return size, exact, nil
}

// Fetch all files.
func (f *files) Fetch(ctx context.Context, folder *model.Folder) error {
	return transfer.Files(ctx, folder, f.have, f.o)
}
