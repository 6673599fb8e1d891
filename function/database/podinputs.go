// SPDX-License-Identifier: Apache-2.0

package database

import (
	"encoding/json"
	"maps"

	"github.com/capstan-dev/capstan/apis/v1alpha1"
	"github.com/capstan-dev/capstan/function/compose"
	"github.com/capstan-dev/capstan/function/database/encoding"
)

// revision that the spec asks for: a hash of all that reaches the pods, as far as the spec and the platform's settings say it.
// The version of this function is not in it, so that an upgrade restarts nothing. A field that comes with a later version must be
// left out of it while it means what was before, or the upgrade would restart every Database.
func (s *cluster) revision() string { return encoding.Hash(s.essence()) }

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

func (s *cluster) essence() essence {
	e := essence{
		essenceVersion:    s.data,
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
func (s *cluster) restartInputs() map[string]any {
	inputs := map[string]any{
		"version":     s.data,
		"memory":      canonical(s.size.memory),
		"connections": s.size.connections,
	}
	if s.archives() {
		inputs["archive"] = true
	}
	maps.Copy(inputs, s.engine.RestartInputs(s.fields()))
	return inputs
}

// pinned parameters: those that need a restart, as they were computed when the spec asked for them. Another version of this
// function may compute others, and members would wait for a restart that nobody asked for.
type pinned struct {
	// Inputs names what the parameters follow from.
	Inputs string `json:"inputs"`

	// Parameters as they were computed.
	Parameters map[string]string `json:"parameters"`

	// Reloaded are names of the parameters of the spec that take effect at once, so that one that is taken out of it is told as
	// such.
	Reloaded []string `json:"reloaded,omitempty"`
}

// pinned parameters of this pass. While the restarts that they need are held, they stay as they are: a member that has to start
// for another reason would have them with the memory it had before.
func (s *cluster) pinned(holds bool) pinned {
	inputs, p := encoding.Hash(s.restartInputs()), s.loaded()
	if p.Inputs != inputs && !holds || len(p.Parameters) == 0 {
		server := s.server(holds)
		server.Memory = s.size.memory.Value()
		p = pinned{Inputs: inputs, Parameters: s.engine.Restarting(server)}
	}
	p.Reloaded = nil
	for _, name := range compose.SortedKeys(s.spec.Config) {
		if !s.engine.NeedsRestart(name, s.data) {
			p.Reloaded = append(p.Reloaded, name)
		}
	}
	return p
}

// loaded parameters are those that were pinned before.
func (s *cluster) loaded() pinned {
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
func (s *cluster) preload() []string {
	return s.engine.Libraries(s.fields())
}

// synchronous reports whether a commit waits for another member.
func (s *cluster) synchronous(holds bool) bool {
	// Of a spec that cannot be read nothing was set.
	return s.headcount(holds) > 1 && s.spec.Availability != nil && s.spec.Availability.Durability != v1alpha1.DurabilityAsynchronous
}

// headcount of the members that count: those that are asked for, and as long as nobody may be removed, those that are.
func (s *cluster) headcount(holds bool) int32 {
	n := s.spec.Replicas
	if holds {
		n = max(n, int32(len(s.sets))) //nolint:gosec // At most nine.
	}
	return n
}
