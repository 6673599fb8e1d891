// SPDX-License-Identifier: Apache-2.0

package postgres

import (
	"encoding/json"
	"fmt"
	"slices"

	"github.com/capstan-dev/capstan/apis/v1alpha1"
	"github.com/capstan-dev/capstan/function/compose"
	"github.com/capstan-dev/capstan/function/database/encoding"
	"github.com/capstan-dev/capstan/function/database/engine"
)

// fieldCapstan is what changed where no field of the spec did.
const fieldCapstan = "capstan"

// fieldHuge is where huge pages come from.
const fieldHuge = "spec.resources.hugePages"

// Keys of restart inputs. They are part of the revision of every member that runs.
const (
	inputConfig  = "config"
	inputPreload = "preload"
	inputCron    = "cron"
	inputHuge    = "hugePages"
)

// RestartInputs are parameters of the spec that are read at the start, and what extensions need.
func (e postgreSQL) RestartInputs(s engine.Server) map[string]any {
	inputs := map[string]any{}
	if config := server(s).configured(true); len(config) > 0 {
		inputs[inputConfig] = config
	}
	if libraries := e.Libraries(s); len(libraries) > 0 {
		inputs[inputPreload] = libraries
	}
	if d := cronDatabase(s); d != "" {
		inputs[inputCron] = d
	}
	if h := s.HugePages; h.Amount > 0 {
		inputs[inputHuge] = fmt.Sprintf("%d of %d", h.Amount, h.Page)
	}
	return inputs
}

func (postgreSQL) Restarting(s engine.Server) map[string]string { return server(s).restarting() }

func (postgreSQL) NeedsRestart(parameter, version string) bool {
	return needsRestart(parameter, major(version))
}

// Restarted are the fields that other restart inputs come from.
func (postgreSQL) Restarted(before, after map[string]any) []v1alpha1.ChangeEffect {
	var effects []v1alpha1.ChangeEffect
	add := func(field string, parameters ...string) {
		effects = append(effects, v1alpha1.ChangeEffect{Field: field, Effect: v1alpha1.EffectRestart, Parameters: parameters, Cause: v1alpha1.ChangedBySpec})
	}
	if names := encoding.Differing(compose.Map(before, inputConfig), compose.Map(after, inputConfig)); len(names) > 0 {
		add("spec.config", names...)
	}
	if !encoding.Same(before[inputPreload], after[inputPreload]) {
		add("spec.extensions", "shared_preload_libraries")
	}
	if !encoding.Same(before[inputCron], after[inputCron]) {
		add("spec.extensions", "cron.database_name")
	}
	if !encoding.Same(before[inputHuge], after[inputHuge]) {
		add(fieldHuge, compose.SortedKeys(postgreSQL{}.OwnParameters(engine.Server{HugePages: engine.HugePages{Page: bytesMB, Amount: bytesMB}}))...)
	}
	return effects
}

// withExtensions come from spec.extensions, and change when a member starts.
var withExtensions = []string{"cron.database_name", "cron.use_background_workers", "shared_preload_libraries"}

// Reloaded are the fields that another dynamic configuration comes from, without what needs a restart.
func (e postgreSQL) Reloaded(r engine.Reload) []v1alpha1.ChangeEffect {
	var was, now map[string]any
	if r.Before == r.After || json.Unmarshal([]byte(r.Before), &was) != nil || json.Unmarshal([]byte(r.After), &now) != nil {
		return nil
	}
	var effects []v1alpha1.ChangeEffect
	add := func(field, cause string, parameters ...string) {
		effects = append(effects, v1alpha1.ChangeEffect{Field: field, Effect: v1alpha1.EffectReload, Parameters: parameters, Cause: cause})
	}
	for _, key := range encoding.Differing(was, now) {
		switch key {
		case "ttl", "loop_wait", "retry_timeout":
			add("spec.availability.profile", v1alpha1.ChangedBySpec)
		case "synchronous_mode", "synchronous_node_count", "synchronous_mode_strict":
			add("spec.availability.durability", v1alpha1.ChangedBySpec)
		case "ignore_slots": // It comes with wal_level.
		case "postgresql", "slots", "pause", keyFence, keyFenceTo, keyFenceSeconds, keyFenceWithdraw: // An upgrade reports itself.
		default:
			add(fieldCapstan, v1alpha1.ChangedByCapstan)
		}
	}
	before, after := compose.Map(was, "postgresql"), compose.Map(now, "postgresql")
	withLevel := !encoding.Same(was["ignore_slots"], now["ignore_slots"]) // They come with wal_level, and so does a line of pg_hba.
	for _, key := range encoding.Differing(before, after) {
		if key != "parameters" && (key != "pg_hba" || !withLevel) {
			add(fieldCapstan, v1alpha1.ChangedByCapstan)
		}
	}
	restarting := e.Restarting(r.Server)
	for _, name := range encoding.Differing(compose.Map(before, "parameters"), compose.Map(after, "parameters")) {
		if _, restarts := restarting[name]; restarts || e.NeedsRestart(name, r.Server.Version) || slices.Contains(withExtensions, name) {
			continue // The effects of what members run report it.
		}
		field, cause := fieldOf(r, name)
		add(field, cause, name)
	}
	return effects
}

// fieldOf a parameter that is reloaded: where its value comes from.
func fieldOf(r engine.Reload, parameter string) (field, cause string) {
	if _, set := r.Server.Config[parameter]; set || slices.Contains(r.Set, parameter) {
		return "spec.config", v1alpha1.ChangedBySpec
	}
	if r.HugePages && parameter == "effective_cache_size" {
		return fieldHuge, v1alpha1.ChangedBySpec
	}
	switch parameter {
	case "max_wal_size", "min_wal_size", "max_slot_wal_keep_size", "wal_keep_size":
		return "spec.storage", v1alpha1.ChangedBySpec
	case "sync_replication_slots", "hot_standby_feedback", "session_preload_libraries":
		return "spec.config", v1alpha1.ChangedBySpec // They come with wal_level, and with parameters of a library.
	case "wal_sender_timeout", "wal_receiver_timeout":
		return "spec.availability.profile", v1alpha1.ChangedBySpec
	case "effective_cache_size", "maintenance_work_mem", "work_mem":
		if r.OwnMemory {
			return "spec.resources.memory", v1alpha1.ChangedBySpec
		}
		return "spec.plan", v1alpha1.ChangedBySpec
	default:
		return fieldCapstan, v1alpha1.ChangedByCapstan
	}
}
