// SPDX-License-Identifier: Apache-2.0

package download

import (
	"bytes"
	"context"
	"fmt"
	"net/url"
	"path"
	"strings"
)

// maxSums is more than any list of checksums has.
const maxSums = 1 << 20

// Published returns pins with the checksums that the publisher of a tool states, for all architectures.
func (d *Downloader) Published(ctx context.Context, tool, version string) (Pins, error) {
	var pins Pins
	for _, arch := range Architectures() {
		files, err := d.releases.files(tool, version, arch)
		if err != nil {
			return nil, fmt.Errorf("cannot pin %s: %w", tool, err)
		}
		for _, f := range files {
			sum, source, err := d.publishedSum(ctx, f)
			if err != nil {
				return nil, fmt.Errorf("cannot pin %s %s for %s: %w", tool, version, arch, err)
			}
			pins = append(pins, Pin{Tool: tool, Version: version, Arch: arch, URL: f.URL, SHA256: sum, Source: source})
		}
	}
	return pins, nil
}

// publishedSum reads a checksum from the publisher's list, and returns where it was read. Without TLS anybody on the way could
// have written the list.
func (d *Downloader) publishedSum(ctx context.Context, f File) (sum, source string, err error) {
	address, err := d.locate(f.Sums)
	if err != nil {
		return "", "", err
	}
	if address.Scheme != secure {
		return "", "", fmt.Errorf("%w: the publisher's checksums are only believed over https, not from %s", ErrNotPinned, address.Redacted())
	}
	if err := d.reach(ctx, address); err != nil {
		return "", "", err
	}
	var list bytes.Buffer
	if err := d.get(ctx, address, &list, maxSums, nil); err != nil {
		return "", "", err
	}
	sum, err = findSum(list.String(), fileName(f.URL))
	if err != nil {
		return "", "", fmt.Errorf("%w: %s: %w", ErrNotServed, address.Redacted(), err)
	}
	return sum, address.Redacted(), nil
}

// findSum finds a file in a list as sha256sum writes it, or takes the only word of a list that is just a checksum.
func findSum(list, name string) (string, error) {
	if only := strings.ToLower(strings.TrimSpace(list)); isSum(only) {
		return only, nil
	}
	found := ""
	for line := range strings.Lines(list) {
		words := strings.Fields(line)
		if len(words) != 2 || path.Base(strings.TrimPrefix(words[1], "*")) != name {
			continue
		}
		sum := strings.ToLower(words[0])
		if !isSum(sum) || (found != "" && found != sum) {
			return "", fmt.Errorf("the list of checksums is ambiguous about %s", name)
		}
		found = sum
	}
	if found == "" {
		return "", fmt.Errorf("the list of checksums does not have %s", name)
	}
	return found, nil
}

func fileName(address string) string {
	parsed, err := url.Parse(address)
	if err != nil {
		return path.Base(address)
	}
	return path.Base(parsed.Path)
}
