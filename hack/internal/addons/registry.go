// SPDX-License-Identifier: Apache-2.0

package addons

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/capstan-dev/capstan/hack/internal/image"
)

const registryTimeout = 30 * time.Second

// registry fills the image registry, which runs beside the control plane, with what every node needs.
type registry struct{}

func (registry) Name() string { return "registry" }

func (registry) Tools() []string { return []string{"pause"} }

func (r registry) Apply(ctx context.Context, env *Env) error {
	if err := r.WaitReady(ctx, env); err != nil {
		return err
	}
	if _, err := env.Registry.Ensure(ctx, "pause", "1", image.Spec{
		Platform:   platform(),
		Files:      []image.File{{Path: "/pause", Mode: 0o755, Source: env.Programs.Path("pause", "pause")}},
		Entrypoint: []string{"/pause"},
		User:       "65535",
	}); err != nil {
		return err
	}
	_, err := busybox(ctx, env)
	return err
}

// WaitReady waits for the registry's own answer to the API's base path.
func (registry) WaitReady(ctx context.Context, env *Env) error {
	ctx, cancel := context.WithTimeout(ctx, registryTimeout)
	defer cancel()
	client := &http.Client{Transport: env.Transport}
	for {
		err := get(ctx, client, "http://"+env.Registry.Host+"/v2/")
		if err == nil {
			return nil
		}
		if sleep(ctx, 100*time.Millisecond) != nil {
			return fmt.Errorf("cannot reach the registry: %w", err)
		}
	}
}

func get(ctx context.Context, client *http.Client, url string) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return fmt.Errorf("cannot ask %s: %w", url, err)
	}
	resp, err := client.Do(req)
	if err != nil {
		return fmt.Errorf("cannot ask %s: %w", url, err)
	}
	defer func() { _ = resp.Body.Close() }()
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("cannot use %s: it answers %s", url, resp.Status)
	}
	return nil
}

// sleep returns an error when the context ends first.
func sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}
