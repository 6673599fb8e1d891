// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/remote/transport"

	"github.com/capstan-dev/capstan/hack/internal/cosign"
)

// A remoteRegistry is where a release is published, with the account of the user's container tools.
type remoteRegistry struct{ host string }

func (r remoteRegistry) options(ctx context.Context) []remote.Option {
	return []remote.Option{remote.WithContext(ctx), remote.WithAuthFromKeychain(authn.DefaultKeychain)}
}

func (r remoteRegistry) repository(a artifact) (name.Repository, error) {
	repository, err := name.NewRepository(r.host + "/" + organisation + "/" + a.Name)
	if err != nil {
		return repository, fmt.Errorf("cannot use the registry %q: %w: a registry looks like %s or registry.example.org:5000", r.host, err, publicRegistry)
	}
	return repository, nil
}

// check returns an error when the registry would refuse a push. It costs seconds, and the build minutes.
func (r remoteRegistry) check(ctx context.Context) error {
	for _, a := range artifacts() {
		repository, err := r.repository(a)
		if err != nil {
			return err
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := remote.CheckPushPermission(repository.Tag("latest"), authn.DefaultKeychain, remote.DefaultTransport); err != nil {
			return r.explain(err)
		}
	}
	return nil
}

// explain adds the remedy to what the registry answered.
func (r remoteRegistry) explain(err error) error {
	var refused *transport.Error
	if errors.As(err, &refused) && (refused.StatusCode == http.StatusUnauthorized || refused.StatusCode == http.StatusForbidden) {
		return fmt.Errorf("cannot push to %s: it refuses this account (%s): log in (`docker login %s` writes ~/.docker/config.json) "+
			"with an account that may write there, or set REGISTRY to another one", r.host, http.StatusText(refused.StatusCode), r.host)
	}
	return fmt.Errorf("cannot push to %s: %w: check REGISTRY and the network", r.host, err)
}

// publish makes everything available by its digest, then the signatures, and last the version. A key that is nil signs nothing.
func (r remoteRegistry) publish(ctx context.Context, p *project, images []releasedImage, key *cosign.Key, log *cosign.Log) error {
	if err := r.unchanged(ctx, p.version, images); err != nil {
		return err
	}
	signatures := make([]v1.Image, len(images))
	if key != nil {
		sign := func() (err error) {
			for i, img := range images {
				if signatures[i], err = r.sign(ctx, img, key, log); err != nil {
					return err
				}
			}
			return nil
		}
		if err := p.Step("sign", nil, sign); err != nil {
			return err
		}
	}
	for i, img := range images {
		repository, err := r.repository(img.artifact)
		if err != nil {
			return err
		}
		err = p.Step("push "+repository.Digest(img.digest.String()).String(), nil, func() error {
			if err := remote.Push(repository.Digest(img.digest.String()), img.content, r.options(ctx)...); err != nil {
				return r.explain(err)
			}
			if signatures[i] == nil {
				return nil
			}
			if err := remote.Write(repository.Tag(cosign.Tag(img.digest)), signatures[i], r.options(ctx)...); err != nil {
				return r.explain(err)
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	for _, img := range images {
		repository, err := r.repository(img.artifact)
		if err != nil {
			return err
		}
		if err := remote.Tag(repository.Tag(p.version), img.content, r.options(ctx)...); err != nil {
			return r.explain(err)
		}
	}
	return nil
}

// unchanged returns an error when the registry has other content under the version already: clients that pulled that would keep it.
func (r remoteRegistry) unchanged(ctx context.Context, version string, images []releasedImage) error {
	for _, img := range images {
		repository, err := r.repository(img.artifact)
		if err != nil {
			return err
		}
		there, err := remote.Get(repository.Tag(version), r.options(ctx)...)
		if absent(err) {
			continue
		}
		if err != nil {
			return r.explain(err)
		}
		if there.Digest != img.digest {
			return fmt.Errorf("cannot release %s: %s has other content under this version (%s, not %s), and a version never changes: "+
				"set VERSION to a higher one", version, repository, there.Digest, img.digest)
		}
	}
	return nil
}

// sign returns the signatures that an image has in the registry, with one of the key among them.
func (r remoteRegistry) sign(ctx context.Context, img releasedImage, key *cosign.Key, log *cosign.Log) (v1.Image, error) {
	repository, err := r.repository(img.artifact)
	if err != nil {
		return nil, err
	}
	present, err := remote.Image(repository.Tag(cosign.Tag(img.digest)), r.options(ctx)...)
	if absent(err) {
		return key.SignImage(ctx, log, repository.String(), img.digest, nil)
	}
	if err != nil {
		return nil, r.explain(err)
	}
	if cosign.VerifyImage(present, img.digest, key.Public()) == nil {
		return present, nil
	}
	return key.SignImage(ctx, log, repository.String(), img.digest, present)
}

func absent(err error) bool {
	var refused *transport.Error
	return errors.As(err, &refused) && refused.StatusCode == http.StatusNotFound
}
