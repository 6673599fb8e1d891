// SPDX-License-Identifier: Apache-2.0

package download

import (
	"fmt"
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"

	_ "embed"
)

//go:embed releases.yaml
var embeddedReleases []byte

// Architectures are those that publishers build for and that the cluster runs on.
func Architectures() []string { return []string{"amd64", "arm64"} }

// A release is what is published of a tool: files, or nothing for a reason.
type release struct {
	Built string     `json:"built,omitempty"`
	Files []template `json:"files,omitempty"`
}

// A template is a File before version and architecture are known.
type template struct {
	URL     string            `json:"url"`
	Sums    string            `json:"sums"`
	Program string            `json:"program,omitempty"`
	Members map[string]string `json:"members,omitempty"`
}

// A File is one file of a release.
type File struct {
	URL string
	// Sums is the address of the publisher's checksums for it.
	Sums string
	// Members maps programs to their place in the archive. A file that is a program maps its name to nothing.
	Members map[string]string
}

// IsArchive is false for a file that is a program.
func (f File) IsArchive() bool {
	return strings.HasSuffix(f.URL, ".tar.gz") || strings.HasSuffix(f.URL, ".tgz")
}

type releases map[string]release

func parseReleases(data []byte) (releases, error) {
	var parsed releases
	if err := yaml.UnmarshalStrict(data, &parsed); err != nil {
		return nil, fmt.Errorf("cannot parse the catalogue of releases: %w", err)
	}
	for tool, r := range parsed {
		if (r.Built == "") == (len(r.Files) == 0) {
			return nil, fmt.Errorf("cannot use the catalogue of releases: %q needs either files or a reason why it is built", tool)
		}
		for _, f := range r.Files {
			if (f.Program == "") == (len(f.Members) == 0) {
				return nil, fmt.Errorf("cannot use the catalogue of releases: %s needs either a program or members", f.URL)
			}
		}
	}
	return parsed, nil
}

// Tools returns the names of all tools that are published, sorted.
func (d *Downloader) Tools() []string {
	tools := make([]string, 0, len(d.releases))
	for _, tool := range slices.Sorted(maps.Keys(d.releases)) {
		if d.releases[tool].Built == "" {
			tools = append(tools, tool)
		}
	}
	return tools
}

// Files returns the files that have the programs of a tool in this version, or ErrNotPublished with the reason.
func (d *Downloader) Files(tool, version, arch string) ([]File, error) {
	return d.releases.files(tool, version, arch)
}

// files returns the files that have the programs of a tool, in this version.
func (r releases) files(tool, version, arch string) ([]File, error) {
	found, ok := r[tool]
	if !ok {
		return nil, fmt.Errorf("%w: it is not in the catalogue", ErrNotPublished)
	}
	if found.Built != "" {
		return nil, fmt.Errorf("%w: %s", ErrNotPublished, found.Built)
	}
	if !slices.Contains(Architectures(), arch) {
		return nil, fmt.Errorf("%w: not for architecture %q", ErrNotPublished, arch)
	}
	files := make([]File, 0, len(found.Files))
	for _, t := range found.Files {
		fill := strings.NewReplacer("{version}", version, "{number}", number(tool, version), "{arch}", arch, "{machine}", machine(arch))
		f := File{URL: fill.Replace(t.URL), Members: map[string]string{}}
		f.Sums = strings.ReplaceAll(fill.Replace(t.Sums), "{url}", f.URL)
		if t.Program != "" {
			f.Members[t.Program] = ""
		}
		for program, member := range t.Members {
			f.Members[program] = path.Clean(fill.Replace(member))
		}
		files = append(files, f)
	}
	return files, nil
}

var prometheusModule = regexp.MustCompile(`^v0\.(\d)(\d\d)\.`)

// number is a version as file names have it. Prometheus's Go module counts differently: its v0.315.0 is release 3.15.0.
func number(tool, version string) string {
	if found := prometheusModule.FindStringSubmatch(version); tool == "prometheus" && found != nil {
		minor := strings.TrimPrefix(found[2], "0")
		if minor == "" {
			minor = "0"
		}
		return found[1] + "." + minor + "." + strings.TrimPrefix(version, found[0])
	}
	return strings.TrimPrefix(version, "v")
}

// machine is an architecture as uname names it; for arm64 publishers rarely do.
func machine(arch string) string {
	if arch == "amd64" {
		return "x86_64"
	}
	return arch
}
