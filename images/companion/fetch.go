// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"log/slog"
	"runtime/debug"
	"strings"
	"time"

	"github.com/capstan-dev/capstan/images/companion/internal/failure"
	"github.com/capstan-dev/capstan/images/companion/internal/source"
	"github.com/capstan-dev/capstan/images/companion/internal/store"
	"github.com/capstan-dev/capstan/images/companion/internal/transfer"
)

// memory is what the garbage collector tries to stay below, in bytes.
const memory = 40 << 20

// fetchCmd downloads a model into the folder KEY of a volume.
type fetchCmd struct {
	expectations

	Source string   `help:"Where the model is: s3://bucket/prefix, gs://bucket/prefix, hf://organisation/repository@revision, https://host/file, mlflow-artifacts:/path or oci://reference." placeholder:"URI"                                          required:""`
	Cache  string   `help:"Folder of the volume that models are kept on."                                                                                                                    placeholder:"DIR"                                          required:""`
	Key    string   `help:"Name of the model's folder on the volume: lower case letters, digits and dashes. Another model, digest or size needs another key."                                placeholder:"KEY"                                          required:""`
	Keep   []string `env:"KEEP_KEYS"                                                                                                                                                         help:"Keys of models that are never removed to make room." placeholder:"KEY"`

	Endpoint    string `help:"URL of the S3, Google, Hugging Face or MLflow server. Default: from the credentials." placeholder:"URL"`
	Region      string `help:"Region of the bucket. Default: from the credentials, and else us-east-1."             placeholder:"REGION"`
	Credentials string `help:"Folder with the keys of a Secret, a file each."                                       placeholder:"DIR"`

	Registered bool   `help:"A model registry named the source: send username, password and token only to the servers of --trusted and of the credentials' own endpoint."`
	Trusted    string `help:"URL of the server that credentials may be sent to although a model registry named it."                                                       placeholder:"URL"`

	Pod      string        `env:"POD_UID" help:"What distinguishes this pod from others. With it, a container that starts again need not wait for itself." placeholder:"UID"`
	Parallel int           `default:"8"   help:"Requests side by side."`
	Patience time.Duration `default:"5m"  help:"How long a server may fail without any progress in between."`
	Stale    time.Duration `default:"1m"  help:"How long another pod that downloads the same model may show no sign of life."`
	Progress time.Duration `default:"5s"  help:"How often to log how far the download is."`
}

// Run fetches the model.
func (c *fetchCmd) Run(ctx context.Context, log *slog.Logger) error {
	debug.SetMemoryLimit(memory)
	if c.Parallel < 1 || c.Stale < time.Second/10 || c.Progress <= 0 {
		return failure.New(failure.Invalid, "--parallel must be at least 1, --stale 100ms, and --progress more than nothing", "correct the command line")
	}
	if err := c.validate(); err != nil {
		return err
	}
	if strings.HasPrefix(c.Source, "http:") && c.Digest == "" {
		return failure.New(failure.Invalid, "anyone on the way can replace what http:// downloads", "set spec.model.digest, or use https://")
	}
	credentials, err := source.ReadCredentials(c.Credentials)
	if err != nil {
		return err
	}
	s, err := store.Open(log, store.Options{Dir: c.Cache, Key: c.Key, Keep: c.Keep, Pod: c.Pod, Stale: c.Stale})
	if err != nil {
		return err
	}
	defer func() { _ = s.Close() }()
	for {
		if done, err := c.there(log, s); done || err != nil {
			return err
		}
		held, lock, err := s.Lock(ctx)
		if err != nil {
			return err
		}
		err = c.fetch(held, log, s, credentials)
		lost := store.Lost(held)
		lock.Release()
		if !lost || ctx.Err() != nil {
			return err
		}
	}
}

// there reports whether the model is on the volume, and is the right one.
func (c *fetchCmd) there(log *slog.Logger, s *store.Store) (bool, error) {
	m, err := s.Use()
	if err != nil || m == nil {
		return false, err
	}
	if err := c.verify(m); err != nil {
		log.Warn("the model on the volume is another one, so it is downloaded again", "error", err)
		return false, nil
	}
	log.Info("the model is there", "key", c.Key, "digest", m.Digest(), "size", m.Size(), "files", len(m))
	return true, nil
}

// fetch the model, unless another pod has while this one waited for the lock.
func (c *fetchCmd) fetch(ctx context.Context, log *slog.Logger, s *store.Store, credentials source.Credentials) error {
	if done, err := c.there(log, s); done || err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	log.Info("fetching", "source", source.Public(c.Source), "key", c.Key)
	progress := transfer.NewProgress(ctx, log, c.Progress)
	src, err := source.New(ctx, c.Source, source.Options{
		Options: transfer.Options{
			Retry: transfer.Retry{Limit: c.Patience, Log: log}, Parallel: c.Parallel, Progress: progress,
		},
		Endpoint: c.Endpoint, Region: c.Region, Credentials: credentials, MaxSize: c.Size, Log: log,
		Registered: c.Registered, Trusted: c.Trusted,
	})
	if err != nil {
		return err
	}
	size, exact, err := src.Size(ctx)
	if err != nil {
		return err
	}
	if c.Size > 0 && exact && size != c.Size {
		return c.wrongSize(size)
	}
	if exact {
		progress.Expect(size)
	}
	if err := s.Room(max(size, c.Size)); err != nil {
		return err
	}
	p, err := s.Begin()
	if err != nil {
		return err
	}
	defer s.Discard(p)
	if err := src.Fetch(ctx, p.Folder); err != nil {
		return err
	}
	m, err := p.Seal(ctx, log)
	if err != nil {
		return err
	}
	if err := c.verify(m); err != nil {
		return err
	}
	progress.Done()
	// A pod that took this one for dead may have been faster.
	if done, err := c.there(log, s); done || err != nil {
		return err
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := s.Publish(p, m); err != nil {
		return err
	}
	log.Info("fetched", "key", c.Key, "digest", m.Digest(), "size", m.Size(), "files", len(m))
	return nil
}
