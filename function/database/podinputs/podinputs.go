// SPDX-License-Identifier: Apache-2.0

// Package podinputs has what reaches the pods of members: their configuration, the revision that it makes, and the effects of a
// change on members that run.
package podinputs

import (
	"encoding/json"
	"maps"

	"github.com/capstan-dev/capstan/apis/v1alpha1"
	"github.com/capstan-dev/capstan/function/compose"
	"github.com/capstan-dev/capstan/function/database/backup"
	"github.com/capstan-dev/capstan/function/database/encoding"
	"github.com/capstan-dev/capstan/function/database/facts"
	"github.com/capstan-dev/capstan/function/database/names"
	"github.com/capstan-dev/capstan/function/placement"
)

// Revision that the spec desires: a hash of all that reaches the pods, as far as the spec and the platform's settings determine it.
// The version of this function is not in it, so that an upgrade restarts nothing. A field that comes with a later version must be
// left out of it while it means what was before, or the upgrade would restart every Database.
func Revision(s *facts.Cluster) string { return encoding.Hash(podInputsOf(s)) }

// Keys of podInputs.
const (
	inputVersion     = "version"
	inputImage       = "image"
	inputCPU         = "cpu"
	inputMemory      = "memory"
	inputSpread      = "spread"
	inputParameters  = "parameters"
	inputExporter    = "exporter"
	inputServer      = "server"
	inputPullSecrets = "pullSecrets"
	inputPod         = "pod"
	inputAffinity    = "affinity"
	inputPodMetadata = "podMetadata"
	inputWAL         = "logVolume"
	inputLogs        = "logs"
	inputQueries     = "queries"
)

func podInputsOf(s *facts.Cluster) podInputs {
	e := podInputs{
		inputVersion:    s.Data,
		inputImage:      s.Image.Pinned,
		inputCPU:        facts.Canonical(s.Size.CPU),
		inputMemory:     facts.Canonical(s.Size.Memory),
		inputSpread:     s.Spec.Availability.Spread,
		inputParameters: restartInputs(s),
	}
	if s.Exports() {
		e[inputExporter] = true
	}
	if len(s.Spec.Monitoring.Queries) > 0 {
		e[inputQueries] = true // which they are, is read at run time
	}
	if s.PlatformSigned() {
		e[inputServer] = true
	}
	backup.ArchivesAs(s, e)
	if len(s.Spec.ImagePullSecrets) > 0 {
		e[inputPullSecrets] = s.PullSecrets()
	}
	if sc := s.Scheduling(); !placement.IsEmpty(sc) {
		e[inputPod] = sc
	}
	if a := s.Affinity(); a != nil {
		e[inputAffinity] = encoding.Hash(a) // which it is, may be long
	}
	if p := s.Spec.PodMetadata; p != nil && len(p.Labels)+len(p.Annotations) > 0 {
		e[inputPodMetadata] = p
	}
	if s.Spec.WALStorage != nil {
		e[inputWAL] = true
	}
	if s.LogsJSON() {
		e[inputLogs] = v1alpha1.LogJSON
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
// function may compute others, and members would wait for a restart that no edit requested.
type Pinned struct {
	// Inputs names what the parameters follow from.
	Inputs string `json:"inputs"`

	// Parameters as they were computed.
	Parameters map[string]string `json:"parameters"`

	// Reloaded are names of the parameters of the spec that take effect at once, so that the effect of a removed one names
	// spec.config.
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
