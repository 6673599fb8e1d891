// SPDX-License-Identifier: Apache-2.0

// Package postgres knows PostgreSQL and Patroni: what parameters there are, which follow from the size of a member, and the files
// that members start with. It knows nothing of Kubernetes objects.
package postgres

import "github.com/capstan-dev/capstan/function/database/engine"

// A Server is what the configuration of a Database's members follows from, with what PostgreSQL makes of it.
type Server struct {
	engine.Server

	// Major version.
	Major int

	// MaxConnections of each member.
	MaxConnections int32

	// Preload names libraries that are loaded at the start, sorted.
	Preload []string

	// CronDatabase is the one database that pg_cron lives in, or empty without pg_cron.
	CronDatabase string

	// Pace of failover.
	Pace Pace
}

// Pace says how soon silence counts as a loss, in seconds.
type Pace struct {
	// TTL is the life of the leader lock, LoopWait the time between two runs of Patroni's loop, RetryTimeout the time an answer of
	// the API server may take. LoopWait and twice RetryTimeout must not exceed TTL, and Patroni takes no TTL below 20.
	TTL, LoopWait, RetryTimeout int

	// SenderTimeout ends a connection of replication that is silent.
	SenderTimeout int
}

// Paces by how soon another member becomes the leader.
var (
	Fast     = Pace{TTL: 20, LoopWait: 5, RetryTimeout: 5, SenderTimeout: 5}
	Balanced = Pace{TTL: 30, LoopWait: 10, RetryTimeout: 10, SenderTimeout: 10}
	Patient  = Pace{TTL: 90, LoopWait: 10, RetryTimeout: 35, SenderTimeout: 10}
)
