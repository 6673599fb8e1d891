// SPDX-License-Identifier: Apache-2.0

package download

import (
	"bytes"
	"cmp"
	"encoding/hex"
	"fmt"
	"os"
	"slices"

	"sigs.k8s.io/yaml"

	_ "embed"
)

//go:embed pins.yaml
var embeddedPins []byte

// PinsFile is the place of the embedded pins below the folder hack.
const PinsFile = "internal/download/pins.yaml"

const pinsHeader = `# SPDX-License-Identifier: Apache-2.0
#
# Written by "go -C hack run ./releases pin": SHA-256 sums of files of releases. Source says where a sum was read.
`

// A Pin is the checksum of one file of a release.
type Pin struct {
	Tool    string `json:"tool"`
	Version string `json:"version"`
	Arch    string `json:"arch"`
	URL     string `json:"url"`
	SHA256  string `json:"sha256"`
	// Source says where the checksum was read.
	Source string `json:"source"`
}

// Pins are checksums of files of releases.
type Pins []Pin

// ReadPins reads a file of pins.
func ReadPins(file string) (Pins, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("cannot read the pins of releases: %w", err)
	}
	return ParsePins(data)
}

// Write writes a file of pins.
func (p Pins) Write(file string) error {
	data, err := p.Marshal()
	if err != nil {
		return err
	}
	if err := os.WriteFile(file, data, 0o644); err != nil {
		return fmt.Errorf("cannot write the pins of releases: %w", err)
	}
	return nil
}

// ParsePins parses the content of a file of pins.
func ParsePins(data []byte) (Pins, error) {
	var pins Pins
	if err := yaml.UnmarshalStrict(data, &pins); err != nil {
		return nil, fmt.Errorf("cannot parse the pins of releases: %w", err)
	}
	for _, p := range pins {
		if !isSum(p.SHA256) {
			return nil, fmt.Errorf("cannot use the pins of releases: %q of %s is no SHA-256 sum in lower-case hexadecimal", p.SHA256, p.URL)
		}
	}
	return pins, nil
}

// sum returns the pinned checksum of a file, or nothing.
func (p Pins) sum(address string) string {
	i := slices.IndexFunc(p, func(pin Pin) bool { return pin.URL == address })
	if i < 0 {
		return ""
	}
	return p[i].SHA256
}

// Marshal returns the content of a file of pins, sorted.
func (p Pins) Marshal() ([]byte, error) {
	sorted := slices.Clone(p)
	slices.SortFunc(sorted, func(a, b Pin) int {
		return cmp.Or(cmp.Compare(a.Tool, b.Tool), cmp.Compare(a.Arch, b.Arch), cmp.Compare(a.URL, b.URL))
	})
	var out bytes.Buffer
	out.WriteString(pinsHeader)
	for _, p := range sorted {
		_, _ = fmt.Fprintf(&out, "\n- tool: %s\n  version: %s\n  arch: %s\n  url: %s\n  sha256: %s\n  source: %q\n",
			p.Tool, p.Version, p.Arch, p.URL, p.SHA256, p.Source)
	}
	if len(sorted) == 0 {
		out.WriteString("\n[]\n")
	}
	// What cannot be read again must not be written.
	if _, err := ParsePins(out.Bytes()); err != nil {
		return nil, err
	}
	return out.Bytes(), nil
}

// keep returns the pins without the pins of other versions of a tool.
func (p Pins) keep(tool, version string) Pins {
	return slices.DeleteFunc(slices.Clone(p), func(pin Pin) bool { return pin.Tool == tool && pin.Version != version })
}

// Merge returns the pins with fresh ones of one version of a tool in place of what was known of it. A fresh checksum that differs
// from the known one of the same file is an error: a published file does not change.
func (p Pins) Merge(tool, version string, fresh Pins) (Pins, error) {
	merged := p.keep(tool, version)
	for _, pin := range fresh {
		if known := merged.sum(pin.URL); known != "" && known != pin.SHA256 {
			return nil, fmt.Errorf("cannot pin %s: the publisher says %s (%s), but %s is pinned: find out which is right before you change it",
				pin.URL, pin.SHA256, pin.Source, known)
		}
	}
	for _, pin := range fresh {
		merged = slices.DeleteFunc(merged, func(known Pin) bool { return known.URL == pin.URL })
		merged = append(merged, pin)
	}
	return merged, nil
}

func isSum(s string) bool {
	data, err := hex.DecodeString(s)
	return err == nil && len(data) == 32 && s == hex.EncodeToString(data)
}
