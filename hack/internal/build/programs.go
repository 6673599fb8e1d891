// SPDX-License-Identifier: Apache-2.0

package build

import (
	"maps"
	"path/filepath"

	"github.com/capstan-dev/capstan/hack/internal/machine"
)

// inside is where a simulated machine sees the cache of programs.
const inside = "/run/programs"

// Programs knows where each tool's programs are.
type Programs struct {
	root    string
	folders map[string]string
}

// Programs returns where each tool's programs are once All has built them. Others are added by name, with their folder
// below the cache.
func (b *Builder) Programs(others map[string]string) (Programs, error) {
	p := Programs{root: b.Cache, folders: map[string]string{}}
	for _, tool := range everything() {
		folder, err := b.folder(tool)
		if err != nil {
			return Programs{}, err
		}
		p.folders[tool.Name] = folder
	}
	maps.Copy(p.folders, others)
	return p, nil
}

// Dir is the folder of a tool's programs.
func (p Programs) Dir(tool string) string { return filepath.Join(p.root, p.folders[tool]) }

// Path of a program of a tool.
func (p Programs) Path(tool, program string) string { return filepath.Join(p.Dir(tool), program) }

// Mounts is what a simulated machine needs to see the programs at all.
func (p Programs) Mounts() []machine.Mount {
	return []machine.Mount{{Source: p.root, Target: inside}}
}

// Inside returns the programs as a simulated machine sees them.
func (p Programs) Inside() Programs { return Programs{root: inside, folders: p.folders} }
