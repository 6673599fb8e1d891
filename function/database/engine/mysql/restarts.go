// SPDX-License-Identifier: Apache-2.0

package mysql

import (
	"slices"

	"github.com/capstan-dev/capstan/apis/members/mysqlmember"
	"github.com/capstan-dev/capstan/apis/v1alpha1"
	"github.com/capstan-dev/capstan/function/compose"
	"github.com/capstan-dev/capstan/function/database/encoding"
	"github.com/capstan-dev/capstan/function/database/engine"
)

// inputConfig is the key of restart inputs. It is part of the revision of every member that runs.
const inputConfig = "config"

// RestartInputs are parameters of the spec that are read at the start.
func (mySQL) RestartInputs(s engine.Server) map[string]any {
	inputs := map[string]any{}
	if config := configured(s, true); len(config) > 0 {
		inputs[inputConfig] = config
	}
	return inputs
}

func (mySQL) Restarting(s engine.Server) map[string]string { return restarting(s) }

func (mySQL) NeedsRestart(parameter, _ string) bool { return parameters[parameter].restart }

// Restarted are the fields that other restart inputs come from.
func (mySQL) Restarted(before, after map[string]any) []v1alpha1.ChangeEffect {
	names := encoding.Differing(compose.Map(before, inputConfig), compose.Map(after, inputConfig))
	if len(names) == 0 {
		return nil
	}
	return []v1alpha1.ChangeEffect{{Field: "spec.config", Effect: v1alpha1.EffectRestart, Parameters: names, Cause: v1alpha1.ChangedBySpec}}
}

// Reloaded are the fields that another Coordination comes from.
func (mySQL) Reloaded(r engine.Reload) []v1alpha1.ChangeEffect {
	was, errWas := mysqlmember.ParseDynamic(r.Before)
	now, errNow := mysqlmember.ParseDynamic(r.After)
	if r.Before == r.After || errWas != nil || errNow != nil {
		return nil
	}
	var effects []v1alpha1.ChangeEffect
	for _, name := range encoding.Differing(plain(was.Parameters), plain(now.Parameters)) {
		field, cause := fieldOf(r, name)
		effects = append(effects, v1alpha1.ChangeEffect{Field: field, Effect: v1alpha1.EffectReload, Parameters: []string{name}, Cause: cause})
	}
	return effects
}

func plain(ps map[string]string) map[string]any {
	out := make(map[string]any, len(ps))
	for name, value := range ps {
		out[name] = value
	}
	return out
}

// fieldOf a parameter that takes effect at once: where its value comes from.
func fieldOf(r engine.Reload, parameter string) (field, cause string) {
	if _, set := r.Server.Config[parameter]; set || slices.Contains(r.Set, parameter) {
		return "spec.config", v1alpha1.ChangedBySpec
	}
	switch parameter {
	case parameterExpel, parameterMajority:
		return "spec.availability.profile", v1alpha1.ChangedBySpec
	case parameterRedo, parameterBinlogSize:
		return "spec.storage", v1alpha1.ChangedBySpec
	case parameterBinlogPurge:
		return "spec.backup.enabled", v1alpha1.ChangedBySpec
	default:
		return "capstan", v1alpha1.ChangedByCapstan
	}
}
