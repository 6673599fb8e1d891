// SPDX-License-Identifier: Apache-2.0

package postgres

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/capstan-dev/capstan/apis/v1alpha1"
	"github.com/capstan-dev/capstan/function/database/engine"
	inputv1alpha1 "github.com/capstan-dev/capstan/input/v1alpha1"
)

// TestLogical: slots of consumers are left alone once members write what they need, and standbys keep up with them from version 17 on.
func TestLogical(t *testing.T) {
	replica, logical := map[string]string{"wal_level": "replica"}, map[string]string{"wal_level": "logical"}
	for name, tc := range map[string]struct {
		reason         string
		major          int
		config, pinned map[string]string
		ignored, syncs bool
	}{
		"Replica": {"Slots are Patroni's.", 17, nil, nil, false, false},
		"Logical": {"Slots are the consumers', and standbys keep up with them.", 17, logical, nil, true, true},
		"Earlier": {"Standbys of version 15 cannot.", 15, logical, nil, true, false},
		"Waiting": {"Before the restart no slot of a consumer can exist.", 17, logical, replica, false, false},
		"Done":    {"What members run counts.", 17, logical, logical, true, true},
	} {
		t.Run(name, func(t *testing.T) {
			s := Server{Server: engine.Server{
				Members: 3, Memory: 1 << 30, Storage: 50 << 30, Config: tc.config, Pinned: tc.pinned,
			}, Major: tc.major, MaxConnections: 100, Pace: paces[v1alpha1.FailoverFast]}
			dynamic, err := s.Dynamic()
			if err != nil {
				t.Fatal(err)
			}
			if got := strings.Contains(dynamic, `"ignore_slots":[{"type":"logical"}]`); got != tc.ignored {
				t.Errorf("%s: Patroni leaves slots alone: %t, want %t", tc.reason, got, tc.ignored)
			}
			for _, part := range []string{`"sync_replication_slots":"on"`, `"hot_standby_feedback":"on"`, `"hostssl postgres standby all cert map=members"`} {
				if got := strings.Contains(dynamic, part); got != tc.syncs {
					t.Errorf("%s: has %s: %t, want %t", tc.reason, part, got, tc.syncs)
				}
			}
		})
	}
}

func TestCheckReplication(t *testing.T) {
	logical := map[string]string{"wal_level": "logical"}
	for name, tc := range map[string]struct {
		reason string
		server engine.Server
		want   []string
	}{
		"Nothing":  {"A spec without it is fine.", engine.Server{Version: "15"}, nil},
		"Slots":    {"All that they need is there.", engine.Server{Version: "17", Slots: true, Config: logical}, nil},
		"Level":    {"Members have to write more.", engine.Server{Version: "17", Slots: true}, []string{"spec.config.wal_level: \"\": spec.replication.slots: needs wal_level logical: set spec.config.wal_level to logical, which restarts the members one by one, or remove that"}},
		"Consumer": {"A consumer needs the same.", engine.Server{Version: "15", Replicating: []string{"feed"}, Config: logical}, []string{"spec.version: \"15\": replication of consumer \"feed\": needs version 17 or later: upgrade the Database first, or remove that"}},
		"Feedback": {"A slot would not survive.", engine.Server{Version: "17", Slots: true, Config: map[string]string{"wal_level": "logical", "hot_standby_feedback": "off"}}, []string{"spec.config.hot_standby_feedback: \"off\": slots survive a failover only with hot_standby_feedback: remove the parameter, or spec.replication.slots"}},
	} {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, p := range (postgreSQL{}).CheckReplication(tc.server) {
				got = append(got, p.Message)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s: -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestOutputPlugins: a server refuses a plugin that it is not told of, and none is named for members that decode nothing.
func TestOutputPlugins(t *testing.T) {
	s := engine.Server{Version: "17", Connections: 100, Memory: 1 << 30, Storage: 50 << 30, Slots: true, Plugins: []string{"decoderbufs", "pgoutput", "decoderbufs"}}
	if ps := server(s).parameters(); ps["output_plugin_libraries"] != "" {
		t.Errorf("without logical replication: %q", ps["output_plugin_libraries"])
	}
	s.Config = map[string]string{"wal_level": "logical"}
	if got, want := server(s).parameters()["output_plugin_libraries"], "decoderbufs, pgoutput, test_decoding, wal2json"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if slices.Contains(slices.Collect(maps.Keys((postgreSQL{}).RestartInputs(s))), "output_plugin_libraries") {
		t.Error("members restart for a plugin")
	}
}

// TestExplain: a library that is no extension is loaded by sessions, so that no member restarts, and only from an image that has it.
func TestExplain(t *testing.T) {
	s := engine.Server{Version: "17", Image: inputv1alpha1.DatabaseVersion{Version: "17"}, Config: map[string]string{"auto_explain.log_min_duration": "1s"}}
	ps := (postgreSQL{}).CheckConfig(s)
	if len(ps) != 1 || !strings.Contains(ps[0].Message, `needs the library "auto_explain"`) {
		t.Errorf("an image without the library: %v", ps)
	}
	s.Image.Preload = []string{"auto_explain"}
	if ps := (postgreSQL{}).CheckConfig(s); len(ps) > 0 {
		t.Errorf("an image with the library: %v", ps)
	}
	s.Connections, s.Memory, s.Storage = 100, 1<<30, 50<<30
	with := server(s).parameters()
	if with["session_preload_libraries"] != "auto_explain" || with["auto_explain.log_min_duration"] != "1s" {
		t.Errorf("sessions load nothing: %v", with)
	}
	if inputs := (postgreSQL{}).RestartInputs(s); len(inputs) > 0 {
		t.Errorf("members restart: %v", slices.Collect(maps.Keys(inputs)))
	}
}
