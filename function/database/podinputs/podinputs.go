// SPDX-License-Identifier: Apache-2.0

// Package podinputs has what reaches the pods of members: what they are configured with, the revision that it makes, and what a change of
// it does to members that run.
package podinputs

import (
	"encoding/json"
	"maps"

	"github.com/capstan-dev/capstan/function/compose"
	"github.com/capstan-dev/capstan/function/database/backup"
	"github.com/capstan-dev/capstan/function/database/encoding"
	"github.com/capstan-dev/capstan/function/database/facts"
	"github.com/capstan-dev/capstan/function/database/names"
)

// Revision that the spec asks for: a hash of all that reaches the pods, as far as the spec and the platform's settings say it.
// The version of this function is not in it, so that an upgrade restarts nothing. A field that comes with a later version must be
// left out of it while it means what was before, or the upgrade would restart every Database.
func Revision(s *facts.Cluster) string { return encoding.Hash(essenceOf(s)) }

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

func essenceOf(s *facts.Cluster) essence {
	e := essence{
		essenceVersion:    s.Data,
		essenceImage:      s.Image.Pinned,
		essenceCPU:        facts.Canonical(s.Size.CPU),
		essenceMemory:     facts.Canonical(s.Size.Memory),
		essenceSpread:     s.Spec.Availability.Spread,
		essenceParameters: restartInputs(s),
	}
	if s.Exports() {
		e[essenceExporter] = true
	}
	if s.PlatformSigned() {
		e[essenceServer] = true
	}
	backup.ArchivesAs(s, e)
	if len(s.Spec.ImagePullSecrets) > 0 {
		e[essencePullSecrets] = s.PullSecrets()
	}
	return e
}

// restartInputs are what parameters that need a restart follow from.
func restartInputs(s *facts.Cluster) map[string]any {
	inputs := map[string]any{
		"version":     s.Data,
		"memory":      facts.Canonical(s.Size.Memory),
		"connections": s.Size.Connections,
	}
	if backup.Archives(s) {
		inputs["archive"] = true
	}
	maps.Copy(inputs, s.Engine.RestartInputs(s.Fields()))
	return inputs
}

// Pinned parameters: those that need a restart, as they were computed when the spec asked for them. Another version of this
// function may compute others, and members would wait for a restart that nobody asked for.
type Pinned struct {
	// Inputs names what the parameters follow from.
	Inputs string `json:"inputs"`

	// Parameters as they were computed.
	Parameters map[string]string `json:"parameters"`

	// Reloaded are names of the parameters of the spec that take effect at once, so that one that is taken out of it is told as
	// such.
	Reloaded []string `json:"reloaded,omitempty"`
}

// Pin parameters of this pass. While the restarts that they need are held, they stay as they are: a member that has to start
// for another reason would have them with the memory it had before.
func Pin(s *facts.Cluster, holds bool) Pinned {
	inputs, p := encoding.Hash(restartInputs(s)), loaded(s)
	if p.Inputs != inputs && !holds || len(p.Parameters) == 0 {
		server := Server(s, holds)
		server.Memory = s.Size.Memory.Value()
		p = Pinned{Inputs: inputs, Parameters: s.Engine.Restarting(server)}
	}
	p.Reloaded = nil
	for _, name := range compose.SortedKeys(s.Spec.Config) {
		if !s.Engine.NeedsRestart(name, s.Data) {
			p.Reloaded = append(p.Reloaded, name)
		}
	}
	return p
}

// loaded parameters are those that were pinned before.
func loaded(s *facts.Cluster) Pinned {
	var p Pinned
	if o := s.Observed[s.In(names.DCS)]; o != nil {
		text := compose.Text(o.Map(), "metadata", "annotations", names.AnnotationPinned)
		if json.Unmarshal([]byte(text), &p) != nil {
			return Pinned{}
		}
	}
	return p
}
