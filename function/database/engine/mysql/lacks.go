// SPDX-License-Identifier: Apache-2.0

package mysql

import (
	"github.com/capstan-dev/capstan/function/check"
	"github.com/capstan-dev/capstan/function/database/engine"
)

// lacking features, each with the reason and what to do instead.
var lacking = map[engine.Feature]string{
	engine.FeatureBackup: "Capstan takes no backups of MySQL yet: remove it, and dump the data from a CronJob of your own with a login of spec.consumers " +
		"and mysqldump --single-transaction --set-gtid-purged=OFF",
	engine.FeatureSource:  "Capstan has no backups of MySQL to begin with yet: remove it, and load a dump with a login of spec.consumers when the Database is ready",
	engine.FeatureRestore: "Capstan has no backups of MySQL to restore yet: remove it, and load a dump with a login of spec.consumers",
	engine.FeatureUpgrade: "Capstan does not bring data of MySQL to another series yet: keep the version of the data, or make another Database of the other " +
		"version and load a dump there",
	engine.FeatureDurability:  "a group of MySQL acknowledges a commit when a majority of the members has it, and never otherwise: remove it, or set Synchronous",
	engine.FeaturePooler:      "Capstan has no poolers for MySQL yet: remove it, and limit the connections in each client, or raise spec.config.max_connections",
	engine.FeatureExtensions:  "MySQL has no extensions: remove it",
	engine.FeatureReplication: "Capstan gives consumers no changes of MySQL yet: remove it, and let the consumer read the tables, or write to an outbox table that it reads",
}

// Lacks is about the first form of this engine: what is not in it comes later.
func (mySQL) Lacks(f engine.Feature) string { return lacking[f] }

// CheckExtensions and CheckReplication have nothing to check: the engine lacks both.
func (mySQL) CheckExtensions(engine.Server) []check.Problem  { return nil }
func (mySQL) CheckReplication(engine.Server) []check.Problem { return nil }
