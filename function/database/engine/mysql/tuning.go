// SPDX-License-Identifier: Apache-2.0

package mysql

import (
	"cmp"
	"fmt"
	"maps"
	"strconv"

	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/capstan-dev/capstan/apis/v1alpha1"
	"github.com/capstan-dev/capstan/function/check"
	"github.com/capstan-dev/capstan/function/compose"
	"github.com/capstan-dev/capstan/function/database/engine"
)

// What a member takes beside the buffer pool, as measured: the server with a performance schema of this size, the messages of the group
// that it keeps for members that are slow, and each connection.
const (
	memoryOfServer     = 320 * bytesMB
	memoryOfConnection = bytesMB
	partOfTemporary    = 16 // of the memory, for temporary tables

	leastPool = 128 * bytesMB

	// largeMember has room for all that the server does by default.
	largeMember = 4 * bytesGB
)

// leastMemory of a member, also with few connections.
var leastMemory = resource.MustParse("768Mi")

// LeastMemory leaves room for a buffer pool of a useful size.
func (e mySQL) LeastMemory(s engine.Server) resource.Quantity {
	n := leastPool*5/4 + memoryOfServer + messages(0) + int64(e.Connections(s))*memoryOfConnection
	n = n * partOfTemporary / (partOfTemporary - 1)
	// Whole MiB, which people can read.
	n = (n + bytesMB - 1) / bytesMB * bytesMB
	return *resource.NewQuantity(max(n, leastMemory.Value()), resource.BinarySI)
}

// messages of the group that a member keeps, at most.
func messages(memory int64) int64 {
	if memory < largeMember {
		return 128 * bytesMB // the least that the server takes
	}
	return 256 * bytesMB
}

// A pool of pages of tables in instances, which grow by chunks. The server rounds its size up to whole chunks of all instances.
type pool struct{ size, chunk, instances int64 }

// bufferPool takes four fifths of what nothing else needs. It does not depend on the processors of the node, which the server would count.
func bufferPool(memory int64, connections int32) pool {
	n := memory - memoryOfServer - messages(memory) - int64(connections)*memoryOfConnection - memory/partOfTemporary
	n = max(n*4/5, leastPool)
	p := pool{chunk: leastPool, instances: min(max(n/bytesGB, 1), 8)}
	if memory < largeMember {
		p.chunk /= 2
	}
	p.size = n - n%(p.chunk*p.instances)
	return p
}

// restarting are all parameters that members start with and do not set later: members ask for a restart when one is another. So what
// does not depend on the Database is among them, and another version of Capstan restarts nothing.
func restarting(s engine.Server) map[string]string {
	connections := mySQL{}.Connections(s)
	p := bufferPool(s.Memory, connections)
	ps := maps.Clone(fixed)
	maps.Copy(ps, map[string]string{
		parameterConnections:                   strconv.Itoa(int(connections)),
		parameterBufferPool:                    text(p.size),
		"innodb_buffer_pool_chunk_size":        text(p.chunk),
		"innodb_buffer_pool_instances":         text(p.instances),
		"group_replication_message_cache_size": text(messages(s.Memory)),
		"innodb_log_buffer_size":               text(min(max(s.Memory/64, 8*bytesMB), 64*bytesMB)),
		"temptable_max_ram":                    text(s.Memory / partOfTemporary),
		"table_open_cache":                     text(min(max(s.Memory/(5*bytesMB/2), 400), 4000)),
		"table_definition_cache":               text(min(max(s.Memory/(5*bytesMB/2), 400), 2000)),
		"collation_server":                     "utf8mb4_0900_ai_ci",
	})
	if s.Memory < largeMember {
		// The performance schema has the members of the group in it, so it is made small, and not switched off.
		ps["performance_schema_max_table_instances"] = "500"
		ps["performance_schema_max_thread_instances"] = text(int64(connections) + 100)
	}
	maps.Copy(ps, configured(s, true))
	return ps
}

// base of what takes effect at once: what the file of the server has, too.
func base(s engine.Server) map[string]string {
	p := paceOf(s.Profile)
	purge := "ON"
	if s.Archiving {
		// The server does not know what is in the archive: the program of the member removes binary logs that are.
		purge = "OFF"
	}
	return map[string]string{
		parameterExpel:    strconv.Itoa(p.expel),
		parameterMajority: strconv.Itoa(p.majority),
		// A server that was killed reads it all at its start.
		parameterRedo: text(min(max(min(s.Storage/20, bufferPool(s.Memory, mySQL{}.Connections(s)).size/2)/bytesMB*bytesMB, 128*bytesMB), 8*bytesGB)),
		// A log is removed as a whole.
		parameterBinlogSize: text(min(max(s.Storage/50/bytesMB*bytesMB, 64*bytesMB), bytesGB)),
		// A member that was down for longer is copied.
		parameterBinlogExpiry: strconv.Itoa(24 * 3600),
		// It is there in any case: what is listed no more gets the value of the last start.
		parameterBinlogPurge: purge,
	}
}

// reloading parameters take effect at once.
func reloading(s engine.Server) map[string]string {
	ps := base(s)
	ps[parameterZone] = utc // The file of the server has another name for it.
	maps.Copy(ps, configured(s, false))
	return ps
}

// A pace of failover, in seconds. A member that is silent for five seconds is suspected, and suspicions are checked every fifteen
// seconds: so 0 expels it after about 6 s, 1 to 15 after 20 s, and 20 after 35 s.
//
// A member that hears no majority leaves the group after another while. With Patient and Balanced that is about when the others have another
// leader. With Fast it is longer: members that are left may not hear each other for some seconds, because the thread of the group waits for a
// second at each try to connect to a member whose node is gone. No write depends on it: without a majority none is acknowledged, and the
// program of the member sends clients away at once.
type pace struct{ expel, majority int }

// paces by how soon a standby becomes the leader.
var paces = map[v1alpha1.FailoverProfile]pace{
	v1alpha1.FailoverFast:     {expel: 0, majority: 10},
	v1alpha1.FailoverBalanced: {expel: 5, majority: 15},
	v1alpha1.FailoverPatient:  {expel: 20, majority: 30},
}

func paceOf(profile v1alpha1.FailoverProfile) pace {
	if p, ok := paces[profile]; ok {
		return p
	}
	return paces[v1alpha1.FailoverBalanced]
}

// configured parameters of the spec as the server writes them: those that need a restart, or all others. Some may not be valid: the
// spec is not accepted then.
func configured(s engine.Server, restart bool) map[string]string {
	ps := map[string]string{}
	for name, value := range s.Config {
		p, ok := parameters[name]
		if parsed, valid := p.parsed(value); ok && valid && p.restart == restart {
			ps[name] = parsed
		}
	}
	return ps
}

func text(n int64) string { return strconv.FormatInt(n, 10) }

// CheckConfig finds parameters that a Database cannot set, and values that a member has no room for: a server that takes more than its
// memory is killed.
func (mySQL) CheckConfig(s engine.Server) []check.Problem {
	var ps []check.Problem
	for _, name := range compose.SortedKeys(s.Config) {
		value := s.Config[name]
		if remedy := Check(name, value); remedy != "" {
			ps = append(ps, check.Invalid("spec.config."+name, value, remedy))
			continue
		}
		if n, ok := parameters[name].amount(value); ok && parameters[name].kind == memory && n > s.SpecMemory.Value()/16 {
			ps = append(ps, check.Invalid("spec.config."+name, value, fmt.Sprintf(
				"must be at most a sixteenth of the memory of a member, which is %s, because several sessions take it: lower it, or give members more memory", s.SpecMemory.String())))
		}
	}
	capacity, _ := parameters[parameterIO].amount(cmp.Or(s.Config[parameterIO], fixed[parameterIO]))
	if most, ok := parameters[parameterIOMax].amount(cmp.Or(s.Config[parameterIOMax], fixed[parameterIOMax])); ok && capacity > most {
		ps = append(ps, check.Invalid("spec.config."+parameterIO, s.Config[parameterIO], fmt.Sprintf("must not be above %s: lower it, or raise that", parameterIOMax)))
	}
	return ps
}
