// SPDX-License-Identifier: Apache-2.0

package debian

import (
	"bytes"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// keyring has the keys of all suites. Debian, and Ubuntu with the package debian-archive-keyring, have it here.
const keyring = "/usr/share/keyrings/debian-archive-keyring.gpg"

// lasting is how long after the suites were published the moment of a snapshot is. The snapshot service takes four copies a day and
// answers with the last one before a moment, which might be the one before they were published. Archives keep what they had for
// longer than this.
const lasting = 12 * time.Hour

// A Request is what a Lock is made for.
type Request struct {
	// Architectures as Debian calls them.
	Architectures []string
	// Suites to choose from. Of two versions the newer one is taken, wherever it is.
	Suites []string
	// Names of the packages; what they depend on comes along, what they recommend does not.
	Names []string
	// Without names what is treated as if it were installed already, with all that only it would bring.
	Without []string
}

// Resolve asks apt which files a request needs now. apt works in a folder of its own: nothing of the machine changes, and what
// the machine has installed plays no part.
func Resolve(ctx context.Context, mirrors Mirrors, request Request) (Lock, error) {
	if _, err := exec.LookPath("apt-get"); err != nil {
		return Lock{}, fmt.Errorf("cannot resolve dependencies without apt: do it on Debian: %w", err)
	}
	if _, err := os.Stat(keyring); err != nil {
		return Lock{}, fmt.Errorf("cannot verify archives: %w: install debian-archive-keyring", err)
	}
	lock := Lock{Snapshots: map[string]time.Time{}}
	for _, architecture := range request.Architectures {
		packages, published, err := resolve(ctx, mirrors, request, architecture)
		if err != nil {
			return Lock{}, fmt.Errorf("cannot resolve packages for %s: %w", architecture, err)
		}
		lock.Packages = append(lock.Packages, packages...)
		for suite, at := range published {
			lock.Snapshots[suite] = at.Add(lasting).UTC()
		}
	}
	return lock, nil
}

func resolve(ctx context.Context, mirrors Mirrors, request Request, architecture string) ([]Package, map[string]time.Time, error) {
	root, err := os.MkdirTemp("", "capstan-apt-")
	if err != nil {
		return nil, nil, err
	}
	defer func() { _ = os.RemoveAll(root) }()
	a := apt{root: root}
	if err := a.prepare(mirrors, request, architecture); err != nil {
		return nil, nil, err
	}
	if _, err := a.run(ctx, "apt-get", "update"); err != nil {
		return nil, nil, err
	}
	out, err := a.run(ctx, "apt-get", append([]string{"install", "--yes", "--print-uris"}, request.Names...)...)
	if err != nil {
		return nil, nil, err
	}
	packages, err := parseURIs(out, architecture)
	if err != nil {
		return nil, nil, err
	}
	names := make([]string, len(packages))
	for i, p := range packages {
		names[i] = p.Name
	}
	table, err := a.run(ctx, "apt-cache", append([]string{"madison"}, names...)...)
	if err != nil {
		return nil, nil, err
	}
	packages, err = withSuites(packages, table)
	if err != nil {
		return nil, nil, err
	}
	published, err := a.released()
	return packages, published, err
}

// apt is apt with all its files below a folder.
type apt struct{ root string }

func (a apt) prepare(mirrors Mirrors, request Request, architecture string) error {
	var sources, status strings.Builder
	for _, suite := range request.Suites {
		fmt.Fprintf(&sources, "deb [signed-by=%s] %s %s main\n", keyring, mirrors[archiveOf(suite)], suite)
	}
	// A version that satisfies everything, unless something asks for one exactly, and also what asks for the package of any architecture.
	for _, name := range request.Without {
		fmt.Fprintf(&status, "Package: %s\nStatus: install ok installed\nArchitecture: %s\nMulti-Arch: allowed\nVersion: 9999:0\n\n", name, architecture)
	}
	// How the machine reaches its mirrors stays as it is set up.
	settings := fmt.Sprintf(`Dir::Etc::sourcelist "%[1]s/sources.list";
Dir::Etc::sourceparts "/dev/null";
Dir::Etc::preferences "/dev/null";
Dir::Etc::preferencesparts "/dev/null";
Dir::State "%[1]s/state";
Dir::State::status "%[1]s/status";
Dir::Cache "%[1]s/cache";
APT::Architecture "%[2]s";
APT::Architectures { "%[2]s"; };
APT::Install-Recommends "false";
APT::Sandbox::User "";
APT::Update::Error-Mode "any";
Acquire::ForceHash "SHA256";
Acquire::IndexTargets::deb::DEP-11::DefaultEnabled "false";
Acquire::Languages "none";
`, a.root, architecture)
	for _, dir := range []string{"state/lists/partial", "cache/archives/partial"} {
		if err := os.MkdirAll(filepath.Join(a.root, dir), 0o755); err != nil {
			return err
		}
	}
	for name, content := range map[string]string{"sources.list": sources.String(), "status": status.String(), "apt.conf": settings} {
		if err := os.WriteFile(filepath.Join(a.root, name), []byte(content), 0o600); err != nil {
			return err
		}
	}
	return nil
}

// released returns when each suite was published. Mirrors may lag behind, and this is what they had then.
func (a apt) released() (map[string]time.Time, error) {
	files, err := filepath.Glob(filepath.Join(a.root, "state/lists/*_dists_*_InRelease"))
	if err != nil {
		return nil, err
	}
	published := map[string]time.Time{}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		_, suite, _ := strings.Cut(strings.TrimSuffix(filepath.Base(file), "_InRelease"), "_dists_")
		for line := range strings.Lines(string(data)) {
			if date, ok := strings.CutPrefix(line, "Date: "); ok {
				if published[suite], err = time.Parse(time.RFC1123, strings.TrimSpace(date)); err != nil {
					return nil, err
				}
			}
		}
	}
	return published, nil
}

func (a apt) run(ctx context.Context, program string, args ...string) (string, error) {
	var out, errs bytes.Buffer
	cmd := exec.CommandContext(ctx, program, append([]string{"--quiet"}, args...)...)
	cmd.Env = append(os.Environ(), "APT_CONFIG="+filepath.Join(a.root, "apt.conf"), "LC_ALL=C")
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Run(); err != nil {
		// What is not installable is on the one, why is on the other.
		return "", fmt.Errorf("cannot run %s %s: %w: %s\n%s", program, args[0], err, bytes.TrimSpace(errs.Bytes()), last(out.String(), 2000))
	}
	return out.String(), nil
}

func last(s string, n int) string { return s[max(0, len(s)-n):] }

// parseURIs reads lines like 'http://host/debian/pool/main/n/name/name_1%3a2_amd64.deb' name_1%3a2_amd64.deb 1234 SHA256:abc.
func parseURIs(out, architecture string) ([]Package, error) {
	var packages []Package
	for line := range strings.Lines(out) {
		if !strings.HasPrefix(line, "'") {
			continue
		}
		fields := strings.Fields(line)
		if len(fields) != 4 {
			return nil, fmt.Errorf("cannot understand what apt prints: %q", line)
		}
		address, err := url.PathUnescape(strings.Trim(fields[0], "'"))
		if err != nil {
			return nil, fmt.Errorf("cannot understand what apt prints: %w", err)
		}
		i := strings.Index(address, "/pool/")
		// The name of the downloaded file has the epoch, which the archive leaves out.
		name, rest, _ := strings.Cut(fields[1], "_")
		escaped, _, _ := strings.Cut(rest, "_")
		version, err := url.PathUnescape(escaped)
		if i < 0 || err != nil {
			return nil, fmt.Errorf("cannot understand what apt prints: %q", line)
		}
		p := Package{
			Architecture: architecture, Name: name, Version: version,
			SHA256: strings.TrimPrefix(fields[3], "SHA256:"), Path: address[i+1:],
		}
		if sum, err := hex.DecodeString(p.SHA256); err != nil || len(sum) != 32 {
			return nil, fmt.Errorf("cannot find the sha256 in what apt prints: %q", line)
		}
		packages = append(packages, p)
	}
	if len(packages) == 0 {
		return nil, errors.New("apt names no package")
	}
	return packages, nil
}

// withSuites adds where each version is, from lines like "name | 1.2-3 | http://host/debian sid/main amd64 Packages".
func withSuites(packages []Package, table string) ([]Package, error) {
	suites := map[string]string{}
	for line := range strings.Lines(table) {
		columns := strings.Split(line, "|")
		if len(columns) != 3 {
			continue
		}
		source := strings.Fields(columns[2])
		if len(source) != 4 || source[3] != "Packages" {
			continue
		}
		key := strings.TrimSpace(columns[0]) + " " + strings.TrimSpace(columns[1])
		if _, ok := suites[key]; !ok { // the same version may be in several; the first is named first
			suites[key], _, _ = strings.Cut(source[1], "/")
		}
	}
	for i := range packages {
		suite, ok := suites[packages[i].Name+" "+packages[i].Version]
		if !ok {
			return nil, fmt.Errorf("cannot find the suite of %s %s", packages[i].Name, packages[i].Version)
		}
		packages[i].Suite = suite
	}
	return packages, nil
}
