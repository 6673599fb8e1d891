// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/capstan-dev/capstan/hack/internal/checkout"
	"github.com/capstan-dev/capstan/hack/internal/cosign"
	"github.com/capstan-dev/capstan/hack/internal/memberimage"
)

// toolchain is the one that builds releases: another patch version of Go gives other bytes. The Go command downloads it where it is not
// the one that is installed.
const toolchain = "go1.26.10"

// signNone leaves signatures away.
const signNone = "none"

type releaseCmd struct {
	Registry string `default:"${registry}" env:"REGISTRY" help:"Registry to push to."`

	Platform []string `default:"linux/amd64,linux/arm64" help:"Platforms to build for."`

	Plugin []string `default:"linux/amd64,linux/arm64,darwin/amd64,darwin/arm64,windows/amd64,windows/arm64" help:"Platforms to build the plugin of kubectl for."`

	Folder string `help:"Folder of releases. Default: _output/release of the repository." type:"path"`

	Key string `env:"COSIGN_KEY" help:"Private key: a file, or env://NAME for a variable that holds it."`

	Password string `env:"COSIGN_PASSWORD" help:"Password of the key." hidden:""`

	Sign string `default:"key" enum:"key,none" env:"SIGN" help:"Sign with the key, or leave signatures away: none."`

	Log string `default:"${log}" env:"REKOR_URL" help:"Transparency log that records signatures."`

	AllowDirty bool `env:"ALLOW_DIRTY" help:"For trials: release changes that no commit has."`
}

// Run makes a release. What can fail without the registry comes first, what others see comes last: no user meets half a release under a
// version's name.
func (c *releaseCmd) Run(ctx context.Context, p *project) error {
	return explainDisk(c.run(ctx, p))
}

// noRoom is what the system says, and every program that this one runs.
var noRoom = syscall.ENOSPC.Error()

// explainDisk puts the remedy in place of all that a compiler says when there is no room.
func explainDisk(err error) error {
	if err == nil || !strings.Contains(err.Error(), noRoom) {
		return err
	}
	for line := range strings.Lines(err.Error()) {
		if strings.Contains(line, noRoom) {
			return fmt.Errorf("the disk is full, and no version is published: make room, or set TMPDIR to a folder on another disk: %s", strings.TrimSpace(line))
		}
	}
	return err
}

func (c *releaseCmd) run(ctx context.Context, p *project) error {
	state, err := c.checkSource(ctx, p)
	if err != nil {
		return err
	}
	key, err := c.key()
	if err != nil {
		return err
	}
	registry := remoteRegistry{host: c.Registry}
	if err := registry.check(ctx); err != nil {
		return err
	}

	folder := c.Folder
	if folder == "" {
		folder = filepath.Join(p.root, "_output", "release")
	}
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return fmt.Errorf("cannot create a folder for releases: %w", err)
	}
	work, err := os.MkdirTemp(folder, ".unfinished-")
	if err != nil {
		return fmt.Errorf("cannot create a folder for releases: %w", err)
	}
	defer func() { _ = os.RemoveAll(work) }()

	p.output, p.created, p.env = filepath.Join(work, "built"), state.Time, reproducible()
	if err := os.MkdirAll(p.output, 0o755); err != nil {
		return fmt.Errorf("cannot create a folder for packages: %w", err)
	}
	images, err := c.build(ctx, p)
	if err != nil {
		return err
	}
	if err := p.buildPlugin(ctx, c.Plugin); err != nil {
		return err
	}
	files := filepath.Join(work, "files")
	if err := c.write(p, files, images, state, key); err != nil {
		return err
	}
	if err := registry.publish(ctx, p, images, key, &cosign.Log{URL: c.Log}); err != nil {
		return err
	}
	final := filepath.Join(folder, p.version)
	if err := os.RemoveAll(final); err != nil {
		return fmt.Errorf("cannot replace an earlier run: %w", err)
	}
	if err := os.Rename(files, final); err != nil {
		return fmt.Errorf("cannot put the files in place: %w", err)
	}
	p.Sayf("%s is in %s, its files are in %s", p.version, c.Registry, final)
	return nil
}

// checkSource refuses to release what cannot be built again.
func (c *releaseCmd) checkSource(ctx context.Context, p *project) (checkout.State, error) {
	state, err := checkout.Read(ctx, p.root)
	if err != nil || c.AllowDirty {
		return state, err
	}
	if n := len(state.Dirty); n > 0 {
		return state, fmt.Errorf("cannot release %s: %d changes are in no commit, the first is %q: commit them, or set ALLOW_DIRTY=true for a trial",
			p.version, n, strings.TrimSpace(state.Dirty[0]))
	}
	if os.Getenv(memberimage.DriftVariable) != "" {
		return state, fmt.Errorf("cannot release %s: %s allows other packages of Debian than the locked ones: unset it",
			p.version, memberimage.DriftVariable)
	}
	tagged, err := checkout.CommitOf(ctx, p.root, p.version)
	if err != nil {
		return state, err
	}
	if tagged != "" && !slices.Contains(state.Tags, p.version) {
		return state, fmt.Errorf("cannot release %s: the tag is at commit %.12s, and %.12s is checked out: run `git checkout %s`, or choose another version",
			p.version, tagged, state.Commit, p.version)
	}
	return state, nil
}

// key returns nil when nothing must be signed.
func (c *releaseCmd) key() (*cosign.Key, error) {
	if c.Sign == signNone {
		return nil, nil //nolint:nilnil // No key is what was asked for.
	}
	return cosign.Load(c.Key, c.Password)
}

// reproducible is an environment that decides everything that the user's own might.
func reproducible() []string {
	return []string{"GOTOOLCHAIN=" + toolchain, "GOFLAGS=", "GOWORK=off", "GOEXPERIMENT=", "GOAMD64=v1", "GOARM64=v8.0", "GOFIPS140=off"}
}
