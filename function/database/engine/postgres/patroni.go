// SPDX-License-Identifier: Apache-2.0

package postgres

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"path"
	"strconv"
	"strings"
	"unicode/utf16"

	"sigs.k8s.io/yaml"

	"github.com/capstan-dev/capstan/apis/members"
	"github.com/capstan-dev/capstan/apis/members/pgmember"
	"github.com/capstan-dev/capstan/function/memo"
)

// Labels that Patroni selects pods by, and that it writes on its own pod.
const (
	labelScope       = "cluster-name"
	labelPatroniRole = "capstan.dev/patroni-role"
)

// Keys of a fence in the dynamic configuration.
const (
	keyFence         = "capstan_fence"
	keyFenceTo       = "capstan_fence_to"
	keyFenceSeconds  = "capstan_fence_seconds"
	keyFenceWithdraw = "capstan_fence_withdraw"
)

// methodStandby is how Patroni makes the first member of a standby cluster: from the latest backup of what it follows.
const methodStandby = "standby"

// dynamic configuration, which Patroni keeps in the annotation config of the ConfigMap <scope>-config. Every member applies it.
func (s Server) dynamic() map[string]any {
	postgresql := map[string]any{
		"use_pg_rewind": true,
		"use_slots":     true,
		"parameters":    s.parameters(),
		"pg_hba":        s.access(),
		"pg_ident":      s.identities(),
	}
	if s.Archives || s.Follows {
		// Only a standby that its leader has outrun reads the archive.
		postgresql["recovery_conf"] = map[string]any{"restore_command": members.Program + " fetch %f %p"}
	}
	c := map[string]any{
		"ttl":           s.Pace.TTL,
		"loop_wait":     s.Pace.LoopWait,
		"retry_timeout": s.Pace.RetryTimeout,
		// An asynchronous standby that is further behind is not promoted.
		"maximum_lag_on_failover": bytesMB,
		// Seconds that Patroni waits for a leader to start again, or to stop.
		"primary_start_timeout": 30,
		"primary_stop_timeout":  30,
		// While the API server is down, the leader continues as long as all members acknowledge it.
		"failsafe_mode": true,
		// Slots of members that are down are kept for this time.
		"member_slots_ttl": "30min",
		"synchronous_mode": false,
		"postgresql":       postgresql,
	}
	if s.Standby {
		c["standby_cluster"] = map[string]any{
			"restore_command": members.Program + " fetch --source %f %p",
			// The first member has no leader to copy. The others copy it.
			"create_replica_methods": []string{"basebackup", methodStandby},
		}
	}
	if s.Followed {
		c["slots"] = map[string]any{members.FollowerSlot: map[string]any{"type": "physical"}}
	}
	if s.logical() {
		// Patroni drops slots that it does not know as soon as no consumer reads them.
		c["ignore_slots"] = []any{map[string]any{"type": "logical"}}
	}
	if s.Paused {
		c["pause"] = true
	}
	if f := s.Fence; f.ID != "" {
		// Both are one annotation: a member that reads the fence reads the pause, too.
		c["pause"] = true
		c[keyFence] = f.ID
		if f.To != "" {
			c[keyFenceTo], c[keyFenceSeconds] = f.To, f.Seconds
		}
		if f.Withdraw {
			c[keyFenceWithdraw] = true
		}
	}
	if s.Synchronous && s.Members > 1 {
		c["synchronous_mode"] = "quorum"
		c["synchronous_node_count"] = 1
		c["synchronous_mode_strict"] = s.Strict
	}
	return c
}

// Dynamic configuration as Patroni itself would write it: JSON without white space and beyond ASCII escaped, so that it finds
// nothing to correct.
func (s Server) Dynamic() (string, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(s.dynamic()); err != nil {
		return "", fmt.Errorf("cannot encode the configuration of Patroni: %w", err)
	}
	var out strings.Builder
	out.Grow(b.Len())
	for _, r := range strings.TrimRight(b.String(), "\n") {
		switch {
		case r <= '~':
			out.WriteRune(r)
		case r > 0xffff:
			high, low := utf16.EncodeRune(r)
			fmt.Fprintf(&out, `\u%04x\u%04x`, high, low)
		default:
			fmt.Fprintf(&out, `\u%04x`, r)
		}
	}
	return out.String(), nil
}

// Patroni is its configuration file, the same for every member. The program of the members sets what differs in the environment.
func (s Server) Patroni() (string, error) {
	tls := map[string]any{"sslcert": pgmember.FileMemberCert, "sslkey": pgmember.FileMemberKey, "sslrootcert": pgmember.FileServerCA, "sslmode": "verify-ca"}
	role := func(name string) map[string]any {
		r := map[string]any{"username": name}
		maps.Copy(r, tls)
		return r
	}
	// Only where a commit was on two members is a new copy sure to lose nothing.
	replaceable := s.Synchronous && s.Members > 1
	restapi := map[string]any{
		"listen":   fmt.Sprintf("0.0.0.0:%d", pgmember.PortPatroni),
		"certfile": pgmember.FileMemberCert,
		"keyfile":  pgmember.FileMemberKey,
		"cafile":   pgmember.FileMemberCA,
		// Every client may read. A change needs the certificate of a member.
		"verify_client": "optional",
	}
	server := map[string]any{
		"listen":               fmt.Sprintf("*:%d", pgmember.PortPostgres),
		"data_dir":             pgmember.FolderData,
		"bin_dir":              pgmember.Programs(strconv.Itoa(s.Major)),
		"pgpass":               pgmember.FolderPrivate + "/pgpass",
		"use_unix_socket":      true,
		"use_unix_socket_repl": true,
		"use_pg_rewind":        true,
		"remove_data_directory_on_rewind_failure":     replaceable,
		"remove_data_directory_on_diverged_timelines": replaceable,
		"create_replica_methods":                      []string{"basebackup"},
		"basebackup":                                  map[string]any{"checkpoint": "fast"},
		"authentication": map[string]any{
			"superuser":   map[string]any{"username": pgmember.RoleSuperuser},
			"replication": role(pgmember.RoleReplication),
			"rewind":      role(pgmember.RoleRewind),
		},
		"callbacks": map[string]any{
			"on_start":       members.Program + " callback",
			"on_stop":        members.Program + " callback",
			"on_role_change": members.Program + " callback",
		},
		"before_stop": members.Program + " before-stop",
	}
	if s.Follows {
		server[methodStandby] = map[string]any{"command": members.Program + " restore --standby", "no_params": true, "no_leader": true}
	}
	if s.Pooled || s.Archives {
		// Certificates of poolers and of backup pods have the same authority, and Patroni does not check names.
		restapi["allowlist_include_members"] = true
	}
	raw, err := json.Marshal(map[string]any{
		"scope":   s.Scope,
		"restapi": restapi,
		"ctl": map[string]any{
			"certfile": pgmember.FileMemberCert, "keyfile": pgmember.FileMemberKey, "cacert": pgmember.FileMemberCA,
			// With a certificate of its own this leaves out the name only: members ask each other by address, and the authority
			// signs only for members.
			"insecure": true,
		},
		"kubernetes": map[string]any{
			"namespace":          s.Namespace,
			"labels":             map[string]any{members.LabelDatabase: s.Database},
			"scope_label":        labelScope,
			"role_label":         labelPatroniRole,
			"use_endpoints":      false,
			"bypass_api_service": false,
		},
		"bootstrap":  s.bootstrap(),
		"postgresql": server,
		"watchdog":   map[string]any{"mode": "off"},
		"tags":       map[string]any{},
	})
	if err != nil {
		return "", fmt.Errorf("cannot encode the file of Patroni: %w", err)
	}
	return patroniFiles.Of(raw, func() (string, int, error) {
		text, err := yaml.JSONToYAML(raw)
		if err != nil {
			return "", 0, fmt.Errorf("cannot write the file of Patroni: %w", err)
		}
		return string(text), len(text), nil
	})
}

// patroniFiles by their content as JSON, because YAML takes a third of the planner's time: as many as a thousand Databases have.
var patroniFiles = memo.New[string](4 << 20)

// initdb options: data does not depend on the libraries of the image, so that another image never breaks an index.
func (s Server) initdb() []any {
	options := []any{
		map[string]any{"encoding": "UTF8"},
		map[string]any{"locale": "C.UTF-8"},
		"data-checksums",
	}
	if s.Major >= 17 {
		options = append(options, map[string]any{"locale-provider": "builtin"}, map[string]any{"builtin-locale": "C.UTF-8"})
	}
	return options
}

// PatroniWAL is what members have in addition whose write-ahead log has a volume of its own: new data and new copies put it there.
func (s Server) PatroniWAL() (string, error) {
	folder := map[string]any{"waldir": path.Join(pgmember.FolderWAL, "pg_wal")}
	text, err := yaml.Marshal(map[string]any{
		"bootstrap":  map[string]any{"initdb": append(s.initdb(), folder)},
		"postgresql": map[string]any{"basebackup": folder},
	})
	if err != nil {
		return "", fmt.Errorf("cannot write the file of Patroni: %w", err)
	}
	return string(text), nil
}

// access to the server, the first line that fits counts. The superuser has no access by network. Members come with a certificate,
// clients with a password and over TLS, and poolers look passwords up with a certificate.
//
//nolint:dupword // pg_hba.conf says all for each of its columns.
func (s Server) access() []string {
	lines := []string{
		"local all postgres peer map=members",
		"local all exporter peer",
		"local replication,postgres standby,rewind peer map=members",
		"local all all reject",
		"hostssl replication standby all cert map=members",
		"hostssl postgres rewind all cert map=members",
	}
	if s.synchronizesSlots() {
		// Standbys ask the leader for its slots of logical replication.
		lines = append(lines, "hostssl postgres "+pgmember.RoleReplication+" all cert map=members")
	}
	closed := "postgres,standby,rewind,exporter"
	if s.Pooled {
		lines = append(lines, "hostssl postgres "+pgmember.RolePooler+" all cert map=members")
		closed += "," + pgmember.RolePooler
	}
	return append(lines,
		"host all "+closed+" all reject",
		"hostssl all "+pgmember.RoleAccess+" all scram-sha-256",
		"hostssl all all all scram-sha-256",
		"host all all all reject",
	)
}

// identities: the user of the pods, and the certificates of members and poolers.
func (s Server) identities() []string {
	lines := []string{
		"members " + pgmember.RoleSuperuser + " " + pgmember.RoleSuperuser,
		"members " + pgmember.RoleSuperuser + " " + pgmember.RoleReplication,
		"members " + pgmember.RoleSuperuser + " " + pgmember.RoleRewind,
		"members " + pgmember.MemberCommonName + " " + pgmember.RoleReplication,
		"members " + pgmember.MemberCommonName + " " + pgmember.RoleRewind,
	}
	if s.Pooled {
		lines = append(lines, "members "+pgmember.PoolerCommonName+" "+pgmember.RolePooler)
	}
	return lines
}
