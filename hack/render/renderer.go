// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/capstan-dev/capstan/hack/internal/build"
	"github.com/capstan-dev/capstan/hack/internal/progress"
)

// A renderer holds what all scenarios share: the programs, the running function, and the schemas it may ask for.
type renderer struct {
	root      string
	now       string
	cli       string
	core      string
	dir       string // temporary
	functions string
	schemas   string
	function  *exec.Cmd
	built     bool // the plugin
}

func newRenderer(ctx context.Context, root, now string, p *progress.Printer) (*renderer, error) {
	b, err := build.ForRepository(ctx, root)
	if err != nil {
		return nil, err
	}
	if err := b.Ensure(ctx, p, "crossplane", "crossplane-cli"); err != nil {
		return nil, err
	}
	core, err := b.Dir("crossplane")
	if err != nil {
		return nil, err
	}
	cli, err := b.Dir("crossplane-cli")
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "capstan-render-")
	if err != nil {
		return nil, fmt.Errorf("cannot make a temporary folder: %w", err)
	}
	r := &renderer{
		root: root, now: now, dir: dir,
		cli:  filepath.Join(cli, "crossplane"),
		core: filepath.Join(core, "crossplane"),
	}
	if err := r.start(ctx); err != nil {
		r.close()
		return nil, err
	}
	if r.schemas, err = writeSchemas(filepath.Join(root, "package/provider/crds"), filepath.Join(dir, "schemas")); err != nil {
		r.close()
		return nil, err
	}
	return r, nil
}

// start builds our function and runs it on a free port of the loopback interface.
func (r *renderer) start(ctx context.Context) error {
	program := filepath.Join(r.dir, "function")
	compile := exec.CommandContext(ctx, "go", "build", "-buildvcs=false", "-o", program, "./function")
	compile.Dir = r.root
	if out, err := compile.CombinedOutput(); err != nil {
		return fmt.Errorf("cannot build the function: %w\n%s", err, out)
	}
	address, err := freeAddress(ctx)
	if err != nil {
		return err
	}
	var log bytes.Buffer
	r.function = exec.CommandContext(ctx, program, "--insecure", "--address="+address, "--metrics-address=", "--health-address=")
	r.function.Stderr = &log
	if err := r.function.Start(); err != nil {
		return fmt.Errorf("cannot start the function: %w", err)
	}
	if err := await(ctx, address); err != nil {
		return fmt.Errorf("%w\n%s", err, log.String())
	}
	// An IP literal: for a name, gRPC asks DNS for a service config and waits ten seconds where there is no DNS.
	r.functions = filepath.Join(r.dir, "functions.yaml")
	return os.WriteFile(r.functions, []byte(`apiVersion: pkg.crossplane.io/v1
kind: Function
metadata:
  name: capstan-dev-function-capstan
  annotations:
    render.crossplane.io/runtime: Development
    render.crossplane.io/runtime-development-target: `+address+`
spec:
  package: ghcr.io/capstan-dev/function-capstan
`), 0o600)
}

func (r *renderer) close() {
	if r.function != nil && r.function.Process != nil {
		_ = r.function.Process.Kill()
		_ = r.function.Wait()
	}
	_ = os.RemoveAll(r.dir)
}

func (r *renderer) render(ctx context.Context, s scenario, now string) ([]byte, error) {
	api := filepath.Join(r.root, "apis", s.kind)
	schemas, err := r.served(s)
	if err != nil {
		return nil, err
	}
	composition := filepath.Join(api, "composition.yaml")
	xr, err := stored(s.xr, composition, r.dir)
	if err != nil {
		return nil, err
	}
	args := []string{
		"composition", "render", xr, composition, r.functions,
		"--crossplane-binary=" + r.core,
		"--xrd=" + filepath.Join(api, "definition.yaml"),
		"--required-schemas=" + schemas,
		"--context-values=capstan.dev/now=" + fmt.Sprintf("%q", now),
	}
	if s.observed != "" {
		args = append(args, "--observed-resources="+s.observed)
	}
	if s.required != "" {
		args = append(args, "--required-resources="+s.required)
	}
	cmd := exec.CommandContext(ctx, r.cli, args...)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		return nil, fmt.Errorf("cannot render: %w: %s", err, strings.TrimSpace(stderr.String()))
	}
	return stdout.Bytes(), nil
}

// served schemas of a scenario: all, or without those that its file unserved.yaml lists by kind.
func (r *renderer) served(s scenario) (string, error) {
	if s.unserved == "" {
		return r.schemas, nil
	}
	var unserved struct {
		Kinds []string `json:"kinds"`
	}
	if err := readYAML(s.unserved, &unserved); err != nil {
		return "", err
	}
	dir, err := os.MkdirTemp(r.dir, "schemas-")
	if err != nil {
		return "", fmt.Errorf("cannot make a folder: %w", err)
	}
	return writeSchemas(filepath.Join(r.root, "package/provider/crds"), dir, unserved.Kinds...)
}

func freeAddress(ctx context.Context) (string, error) {
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return "", fmt.Errorf("cannot find a free port: %w", err)
	}
	return l.Addr().String(), l.Close()
}

// await returns once something accepts connections at the address.
func await(ctx context.Context, address string) error {
	deadline := time.Now().Add(15 * time.Second)
	for time.Now().Before(deadline) {
		conn, err := (&net.Dialer{Timeout: time.Second}).DialContext(ctx, "tcp", address)
		if err == nil {
			return conn.Close()
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(50 * time.Millisecond):
		}
	}
	return errors.New("the function did not start to listen within 15 s")
}

// diff shows which lines changed.
func diff(want, got []byte) string {
	return cmp.Diff(strings.Split(string(want), "\n"), strings.Split(string(got), "\n"))
}
