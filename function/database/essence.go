// SPDX-License-Identifier: Apache-2.0

package database

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"github.com/capstan-dev/capstan/apis/v1alpha1"
	"github.com/capstan-dev/capstan/function/compose"
	"github.com/capstan-dev/capstan/function/database/postgres"
)

// revision that the spec asks for: a hash of all that reaches the pods, as far as
// the spec and the platform's settings say it. The version of this function is not
// in it, so that an upgrade restarts nothing. A field that comes with a later
// version must be left out of it while it means what was before, or the upgrade
// would restart every Database.
func (s *state) revision() (string, error) { return hash(s.essence()) }

// Parts of an essence.
const (
	essenceVersion     = "version"
	essenceImage       = "image"
	essenceCPU         = "cpu"
	essenceMemory      = "memory"
	essenceSpread      = "spread"
	essenceParameters  = "parameters"
	essenceExporter    = "exporter"
	essenceServer      = "server"
	essencePullSecrets = "pullSecrets"
)

func (s *state) essence() essence {
	e := essence{
		essenceVersion:    s.spec.Version,
		essenceImage:      s.image.pinned,
		essenceCPU:        canonical(s.size.cpu),
		essenceMemory:     canonical(s.size.memory),
		essenceSpread:     s.spec.Availability.Spread,
		essenceParameters: s.restartInputs(),
	}

	if s.exports() {
		e[essenceExporter] = true
	}

	if s.platformSigned() {
		e[essenceServer] = true
	}

	s.archivesAs(e)

	if len(s.spec.ImagePullSecrets) > 0 {
		e[essencePullSecrets] = s.pullSecrets()
	}

	return e
}

// restartInputs are what parameters that need a restart follow from.
func (s *state) restartInputs() map[string]any {
	inputs := map[string]any{
		"version":     s.spec.Version,
		"memory":      canonical(s.size.memory),
		"connections": s.size.connections,
	}

	config := map[string]string{}

	for name, v := range s.spec.Config {
		if postgres.NeedsRestart(name, s.image.major) {
			config[name] = string(v)
		}
	}

	if len(config) > 0 {
		inputs["config"] = config
	}

	if s.archives() {
		inputs["archive"] = true
	}

	if p := s.preload(); len(p) > 0 {
		inputs["preload"] = p
	}

	if s.cronDatabase() != "" {
		inputs["cron"] = s.cronDatabase()
	}

	return inputs
}

// pinned parameters: those that need a restart, as they were computed when the
// spec asked for them. Another version of this function may compute others, and
// members would wait for a restart that nobody asked for.
type pinned struct {
	// Inputs names what the parameters follow from.
	Inputs string `json:"inputs"`

	// Parameters as they were computed.
	Parameters map[string]string `json:"parameters"`

	// Reloaded are names of the parameters of the spec that take effect at once, so
	// that one that is taken out of it is told as such.
	Reloaded []string `json:"reloaded,omitempty"`
}

// pinned parameters of this pass. While the restarts that they need are held, they
// stay as they are: a member that has to start for another reason would have them
// with the memory it had before.
func (s *state) pinned() (pinned, error) {
	inputs, err := hash(s.restartInputs())
	if err != nil {
		return pinned{}, err
	}

	p := s.loaded()
	if p.Inputs != inputs && !s.holds || len(p.Parameters) == 0 {
		server := s.server()
		server.Memory = s.size.memory.Value()
		p = pinned{Inputs: inputs, Parameters: server.Restarting()}
	}

	p.Reloaded = nil

	for _, name := range sortedKeys(s.spec.Config) {
		if !postgres.NeedsRestart(name, s.image.major) {
			p.Reloaded = append(p.Reloaded, name)
		}
	}

	return p, nil
}

// loaded parameters are those that were pinned before.
func (s *state) loaded() pinned {
	var p pinned

	if o := s.Observed[s.in(nameDCS)]; o != nil {
		text := compose.Text(o.Map(), "metadata", "annotations", annotationPinned)
		if json.Unmarshal([]byte(text), &p) != nil {
			return pinned{}
		}
	}

	return p
}

// preload libraries of the extensions that are asked for.
func (s *state) preload() []string {
	return postgres.Preloads(s.spec.Extensions, s.image.version.Preload)
}

// synchronous tells whether a commit waits for another member.
func (s *state) synchronous() bool {
	// Of a spec that cannot be read nothing was set.
	return s.headcount() > 1 && s.spec.Availability != nil && s.spec.Availability.Durability != v1alpha1.DurabilityAsynchronous
}

// headcount of the members that count: those that are asked for, and as long as
// nobody may be let go, those that are.
func (s *state) headcount() int32 {
	n := s.spec.Replicas

	if s.holds {
		n = max(n, int32(len(s.sets))) //nolint:gosec // At most nine.
	}

	return n
}

// hash names what a value says, the same for the same JSON.
func hash(v any) (string, error) {
	raw, err := json.Marshal(v)
	if err != nil {
		return "", fmt.Errorf("cannot name a revision: %w", err)
	}

	return compose.Hash(raw), nil
}

func united(a, b map[string]any) map[string]any {
	out := maps.Clone(a)
	maps.Copy(out, b)

	return out
}

// differing keys of two maps, sorted.
func differing(a, b map[string]any) []string {
	if a == nil {
		a = map[string]any{}
	}

	return slices.DeleteFunc(sortedKeys(united(a, b)), func(key string) bool { return same(a[key], b[key]) })
}

// same JSON.
func same(a, b any) bool {
	x, errX := json.Marshal(a)
	y, errY := json.Marshal(b)

	return errX == nil && errY == nil && string(x) == string(y)
}
