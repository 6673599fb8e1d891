// SPDX-License-Identifier: Apache-2.0

package mysql

import (
	"github.com/capstan-dev/capstan/function/check"
	"github.com/capstan-dev/capstan/function/database/engine"
)

// lacking features, each with the reason and what to do instead.
var lacking = map[engine.Feature]string{
	engine.FeatureWorkloadIdentity: "members of MySQL open buckets with keys only: restic gets keys of a role from AWS alone, where no test of Capstan sees them renewed yet: remove it, " +
		"and let the provider's config give workloadCredentials",
	engine.FeatureStandby: "members of MySQL do not follow the archive of another Database yet: remove it; to have its data in another cluster, restore the " +
		"latest moment there with spec.from.backup when it is needed",
	engine.FeatureUpgrade: "Capstan does not bring data of MySQL to another series yet: keep the version of the data, or make another Database of the other " +
		"version and load a dump there",
	engine.FeatureDurability:  "a group of MySQL acknowledges a commit when a majority of the members has it, and never otherwise: remove it, or set Synchronous",
	engine.FeaturePooler:      "Capstan has no poolers for MySQL yet: remove it, and limit the connections in each client, or raise spec.config.max_connections",
	engine.FeatureExtensions:  "MySQL has no extensions: remove it",
	engine.FeatureReplication: "MySQL has its binary logs for consumers of changes, and neither slots nor publications: remove it, and set replication of the consumer",
	engine.FeatureSnapshots:   "Capstan does not take snapshots of the volumes of MySQL yet: remove it, and use backups",
	engine.FeatureMask:        "Capstan does not mask copies of MySQL yet: remove it, and make the copy from a Database whose data may be seen, or with no data and a dump that is masked",
	engine.FeatureWALVolume: "MySQL has its redo log and its binary logs beside the data, and Capstan does not move them yet: remove it, and raise spec.storage " +
		"to give them room",
	engine.FeatureHugePages: "MySQL takes ordinary memory without an error when it gets no huge pages, and a member would be killed for it later; Capstan does not size " +
		"its buffer pool for them yet: remove it, and raise spec.resources.memory",
	engine.FeatureQueries: "members of MySQL run no queries of yours yet: remove it, and run an exporter for them beside your application, as a ReadOnly consumer",
	engine.FeatureDump:    "members of MySQL restore no dumps yet: remove it, make the Database empty, and load the dump into it as a consumer",
}

// Lacks is about the first form of this engine: what is not in it comes later.
func (mySQL) Lacks(f engine.Feature) string { return lacking[f] }

// OwnParameters there are none: all members have the same.
func (mySQL) OwnParameters(engine.Server) map[string]string { return nil }

// CheckExtensions and CheckReplication have nothing to check: the engine has no extensions, and always keeps binary logs.
func (mySQL) CheckExtensions(engine.Server) []check.Problem  { return nil }
func (mySQL) CheckReplication(engine.Server) []check.Problem { return nil }
