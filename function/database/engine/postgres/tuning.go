// SPDX-License-Identifier: Apache-2.0

package postgres

import (
	"fmt"
	"maps"
	"strconv"
	"strings"

	"github.com/capstan-dev/capstan/apis/members/pgmember"
)

// restarting are the parameters that need a restart, with what follows from the size of a member.
func (s Server) restarting() map[string]string {
	ps := map[string]string{
		"max_connections": strconv.Itoa(int(s.MaxConnections)),
		// Enough for nine members, backups and a few consumers of changes. They do not depend on the number of members: to add
		// one restarts none.
		"max_wal_senders":           "20",
		"max_replication_slots":     "20",
		"max_worker_processes":      "16",
		"max_locks_per_transaction": "64",
		"max_prepared_transactions": "0",
		"wal_level":                 "replica",
		// pg_rewind needs it, also where data has no checksums.
		"wal_log_hints": "on",
		// A quarter of the memory; the operating system caches with the rest.
		parameterBuffers: megabytes(s.Memory / 4),
		// A node may have huge pages, and a container that may not use them is killed at its first access. One that may has parameters
		// of its own.
		"huge_pages":              "off",
		"unix_socket_directories": pgmember.FolderSocket,
		"logging_collector":       "off",
	}
	if len(s.Preload) > 0 {
		ps["shared_preload_libraries"] = strings.Join(s.Preload, ",")
	}
	if s.CronDatabase != "" {
		ps["cron.database_name"] = s.CronDatabase
		// Without it, its jobs connect by the network, where no rule admits them.
		ps["cron.use_background_workers"] = "on"
	}
	if s.Archives {
		ps["archive_mode"] = "on"
	}
	own := s.configured(true)
	if s.HugePages.Amount > 0 {
		delete(own, parameterBuffers) // A member has them with its huge pages.
	}
	maps.Copy(ps, own)
	return ps
}

// reloading parameters take effect at once.
func (s Server) reloading() map[string]string {
	ps := map[string]string{
		// What the page cache is likely to hold. It allocates nothing.
		"effective_cache_size": megabytes(s.Memory*3/4 + s.HugePages.Amount),
		"maintenance_work_mem": megabytes(min(max(s.Memory/16, 16*bytesMB), 2<<30)),
		// A quarter of the memory if every connection sorts at once.
		"work_mem": fmt.Sprintf("%dkB", min(max(s.Memory/4/int64(s.MaxConnections), bytesMB), 64*bytesMB)/bytesKB),
		// Most volumes are no spinning disks.
		"random_page_cost":             "1.1",
		"effective_io_concurrency":     "200",
		"wal_compression":              "on",
		"checkpoint_completion_target": "0.9",
		// An isolated leader must not wait long for members when it ends.
		"wal_sender_timeout":      strconv.Itoa(s.Pace.SenderTimeout) + "s",
		"wal_receiver_timeout":    strconv.Itoa(s.Pace.SenderTimeout) + "s",
		"tcp_keepalives_idle":     "10",
		"tcp_keepalives_interval": "5",
		"tcp_keepalives_count":    "3",
		"tcp_user_timeout":        "25s",
		// The server has no compiler, see the image.
		"jit":                         "off",
		"password_encryption":         "scram-sha-256",
		"ssl":                         "on",
		"ssl_cert_file":               pgmember.FileServerCert,
		"ssl_key_file":                pgmember.FileServerKey,
		"ssl_ca_file":                 pgmember.FileMemberCA,
		"ssl_min_protocol_version":    "TLSv1.2",
		"log_destination":             "stderr",
		"log_line_prefix":             "%m [%p] %q%u@%d/%a ",
		"log_timezone":                "UTC",
		"log_checkpoints":             "on",
		"log_lock_waits":              "on",
		"log_temp_files":              "10MB",
		"log_autovacuum_min_duration": "10min",
		"timezone":                    "UTC",
		"track_io_timing":             "on",
	}
	for name, n := range s.log() {
		ps[name] = megabytes(n)
	}
	s.archiving(ps)
	if s.logical() {
		ps["output_plugin_libraries"] = outputPlugins(s.Plugins)
	}
	if s.synchronizesSlots() {
		ps["sync_replication_slots"] = "on"
		// Without it, the leader could remove rows of its catalogs that a slot on a standby still needs.
		ps["hot_standby_feedback"] = "on"
	}
	own := s.configured(false)
	for name := range own {
		if l := parameters[name].library; l != "" {
			// Sessions load it when they begin: no member restarts for it.
			ps["session_preload_libraries"] = l
		}
	}
	maps.Copy(ps, own)
	return ps
}

// log is how much write-ahead log the server keeps, in bytes by parameter. While members get a volume for it, both places have to hold it.
func (s Server) log() map[string]int64 {
	beside := map[string]int64{
		// Time between checkpoints is time to recover: a tenth of the volume at most.
		"max_wal_size": min(max(s.Storage/10, 128*bytesMB), 8<<30),
		"min_wal_size": min(max(s.Storage/40, 80*bytesMB), 1<<30),
		// A member that is missing for long is copied again, before what is kept for it fills the volume.
		"max_slot_wal_keep_size": max(s.Storage/5, 256*bytesMB),
		"wal_keep_size":          min(max(s.Storage/50, 64*bytesMB), 1<<30),
	}
	if s.WALStorage == 0 {
		return beside
	}
	// Nothing else needs room on a volume of its own.
	apart := map[string]int64{
		"max_wal_size":           min(max(s.WALStorage/4, 128*bytesMB), 8<<30),
		"min_wal_size":           min(max(s.WALStorage/10, 80*bytesMB), 1<<30),
		"max_slot_wal_keep_size": max(s.WALStorage/2, 256*bytesMB),
		"wal_keep_size":          min(max(s.WALStorage/10, 64*bytesMB), 1<<30),
	}
	if s.WALMoves {
		for name, n := range beside {
			apart[name] = min(apart[name], n)
		}
	}
	return apart
}

// configured parameters of the spec: those that are read when the server starts, or all others.
func (s Server) configured(restart bool) map[string]string {
	ps := maps.Clone(s.Config)
	maps.DeleteFunc(ps, func(name, _ string) bool { return needsRestart(name, s.Major) != restart })
	return ps
}

// parameters of the members, all of them.
func (s Server) parameters() map[string]string {
	ps := s.reloading()
	if s.Pinned != nil {
		maps.Copy(ps, s.Pinned)
	} else {
		maps.Copy(ps, s.restarting())
	}
	return ps
}

func megabytes(n int64) string { return fmt.Sprintf("%dMB", n/bytesMB) }
