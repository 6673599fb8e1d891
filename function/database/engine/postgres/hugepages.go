// SPDX-License-Identifier: Apache-2.0

package postgres

import (
	"cmp"
	"fmt"

	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/capstan-dev/capstan/function/check"
	"github.com/capstan-dev/capstan/function/database/engine"
)

// What the processes of a server share, as measured with the servers of our image; a test of members compares it with them. It is an
// upper bound: a server that does not fit its huge pages does not start.
const (
	sharedBase = 32 * bytesMB
	// sharedWAL is the most that wal_buffers are by themselves.
	sharedWAL = 16 * bytesMB
	// Each thousand bytes of buffers need that many with all that describes them.
	sharedOfBuffers = 1025
	// A process takes this much, and from 18 on more, for asynchronous input and output.
	sharedOfProcess      = 12 * bytesKB
	sharedOfProcessSince = 44 * bytesKB
	sharedOfLock         = 512
	sharedOfPredicate    = 320
	sharedOfSlot         = 2 * bytesKB
	sharedOfStatement    = 512
	// Processes that are there in any case, and the least that vacuum may have.
	ownProcesses    = 48
	vacuumProcesses = 16

	// leastBuffers of a server with huge pages. It is what initdb begins with.
	leastBuffers = 128 * bytesMB
)

// shared is how many bytes the processes of the server share, at most, with so many bytes of buffers.
func (s Server) shared(buffers int64) int64 {
	return s.sharedBeside() + (buffers*sharedOfBuffers+999)/1000
}

// sharedBeside the buffers.
func (s Server) sharedBeside() int64 {
	number := func(name string, otherwise int64) int64 {
		if n, ok := parameters[name].parsed(s.Config[name]); ok && n >= 0 {
			return int64(n * float64(cmp.Or(parameters[name].unit, 1)))
		}
		return otherwise
	}
	vacuum := max(number("autovacuum_max_workers", 0), number("autovacuum_worker_slots", 0), vacuumProcesses)
	processes := int64(postgreSQL{}.Connections(s.Server)) + number("max_wal_senders", 20) + number("max_worker_processes", 16) + vacuum +
		number("max_prepared_transactions", 0) + ownProcesses
	each := sharedOfProcess
	if s.Major >= 18 {
		each = sharedOfProcessSince
	}
	each += number("max_locks_per_transaction", 64)*sharedOfLock + number("max_pred_locks_per_transaction", 64)*sharedOfPredicate +
		number("track_activity_query_size", bytesKB)
	return sharedBase + number("wal_buffers", sharedWAL) + processes*each + number("max_replication_slots", 20)*sharedOfSlot +
		number("pg_stat_statements.max", 5000)*sharedOfStatement
}

// buffers that the huge pages leave room for.
func (s Server) buffers() int64 {
	return max(0, s.HugePages.Amount-s.sharedBeside()) * 1000 / sharedOfBuffers / bytesMB * bytesMB
}

// OwnParameters of a member with huge pages. All members share the parameters of a server without them, because a member that has to
// restart before its turn has a pod without them, too.
func (postgreSQL) OwnParameters(s engine.Server) map[string]string {
	if s.HugePages.Amount == 0 {
		return nil
	}
	return map[string]string{
		// A server that got fewer than it needs would take ordinary memory instead, and be killed for it later.
		"huge_pages": "on", "huge_page_size": size(float64(s.HugePages.Page)),
		parameterBuffers: cmp.Or(s.Config[parameterBuffers], megabytes(server(s).buffers())),
	}
}

// checkHugePages finds too few of them.
func (s Server) checkHugePages() []check.Problem {
	if s.HugePages.Amount == 0 {
		return nil
	}
	buffers, set := bytesOf(parameterBuffers, s.Config[parameterBuffers])
	if !set {
		buffers = leastBuffers
	}
	needs := (s.shared(buffers) + bytesMB - 1) / bytesMB * bytesMB
	if needs <= s.HugePages.Amount {
		return nil
	}
	binary := func(n int64) string { return resource.NewQuantity(n, resource.BinarySI).String() }
	lower := parameterBuffers
	cause := fmt.Sprintf("with spec.config.%s of %s the server shares up to %s", parameterBuffers, s.Config[parameterBuffers], binary(needs))
	if !set {
		connections := postgreSQL{}.Connections(s.Server)
		cause = fmt.Sprintf("with %d connections the server shares up to %s with the least buffers, which are %s", connections, binary(needs), megabytes(leastBuffers))
		lower = s.largest()
	}
	pages := (needs + s.HugePages.Page - 1) / s.HugePages.Page
	return []check.Problem{check.Invalid("spec.resources.hugePages.amount", binary(s.HugePages.Amount),
		fmt.Sprintf("%s: raise it to at least %s, or lower spec.config.%s", cause, binary(pages*s.HugePages.Page), lower))}
}

// largest is the parameter of the spec that takes most shared memory beside the buffers.
func (s Server) largest() string {
	all := s.sharedBeside()
	name, most := "max_connections", int64(0)
	for parameter := range s.Config {
		without := s
		without.Config = map[string]string{}
		for other, value := range s.Config {
			if other != parameter {
				without.Config[other] = value
			}
		}
		if n := all - without.sharedBeside(); n > most || n == most && n > 0 && parameter < name {
			name, most = parameter, n
		}
	}
	return name
}
