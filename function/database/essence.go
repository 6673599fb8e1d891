// SPDX-License-Identifier: Apache-2.0

package database

import (
	"encoding/json"
	"fmt"

	"github.com/capstan-dev/capstan/apis/v1alpha1"
	"github.com/capstan-dev/capstan/function/compose"
	"github.com/capstan-dev/capstan/function/database/postgres"
)

// revision that the spec asks for: a hash of all that reaches the pods, as far as
// the spec and the platform's settings say it. The version of this function is not
// in it, so that an upgrade restarts nothing. A field that comes with a later
// version must be left out of it while it means what was before, or the upgrade
// would restart every Database.
func (s *state) revision() (string, error) {
	e := map[string]any{
		"version":    s.spec.Version,
		"image":      s.image.pinned,
		"cpu":        canonical(s.size.cpu),
		"memory":     canonical(s.size.memory),
		"spread":     s.spec.Availability.Spread,
		"parameters": s.restartInputs(),
	}

	if s.exports() {
		e["exporter"] = true
	}

	if s.platformSigned() {
		e["server"] = true
	}

	if len(s.spec.ImagePullSecrets) > 0 {
		e["pullSecrets"] = s.pullSecrets()
	}

	return hash(e)
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
}

func (s *state) pinned() (pinned, error) {
	inputs, err := hash(s.restartInputs())
	if err != nil {
		return pinned{}, err
	}

	if o := s.Observed[nameDCS]; o != nil {
		var p pinned

		text := compose.Text(o.Map(), "metadata", "annotations", annotationPinned)
		if json.Unmarshal([]byte(text), &p) == nil && p.Inputs == inputs && len(p.Parameters) > 0 {
			return p, nil
		}
	}

	return pinned{Inputs: inputs, Parameters: s.server().Restarting()}, nil
}

// preload libraries of the extensions that are asked for.
func (s *state) preload() []string {
	return postgres.Preloads(s.spec.Extensions, s.image.version.Preload)
}

// synchronous tells whether a commit waits for another member.
func (s *state) synchronous() bool {
	return s.spec.Replicas > 1 && s.spec.Availability.Durability != v1alpha1.DurabilityAsynchronous
}

// hash names what a value says, the same for the same JSON.
func hash(v any) (string, error) {
	raw, err := json.Marshal(v)
	if err != nil {
		return "", fmt.Errorf("cannot name a revision: %w", err)
	}

	return compose.Hash(raw), nil
}
