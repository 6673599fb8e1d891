// SPDX-License-Identifier: Apache-2.0

package engine

// A Feature is something that not every engine has. Its text is its row in the table of docs/database.md.
type Feature string

// Features, in the order of that table.
const (
	FeatureBackupVolume     Feature = "backups on a volume (`backup.to.volume`)"
	FeatureWorkloadIdentity Feature = "open buckets by a role, without keys (`workloadIdentity`)"
	FeatureStandby          Feature = "follow another Database (`from.backup.follow`, `promote`)"
	FeatureUpgrade          Feature = "upgrade to another version (`version`, `upgrade`)"
	FeatureDurability       Feature = "other durability than `Synchronous` (`availability.durability`)"
	FeaturePooler           Feature = "poolers (`pooler`)"
	FeatureExtensions       Feature = "extensions (`extensions`)"
	FeatureReplication      Feature = "slots and publications for consumers of changes (`replication`)"
	FeatureMask             Feature = "mask a copy (`from.mask`)"
	FeatureSnapshots        Feature = "snapshots of volumes (`backup.snapshots`, `from.database.snapshot`)"
	FeatureWALVolume        Feature = "a volume for the log alone (`walStorage`)"
	FeatureHugePages        Feature = "huge pages (`resources.hugePages`)"
	FeatureQueries          Feature = "metrics of your own queries (`monitoring.queries`)"
	FeatureImport           Feature = "import a running server (`from.server`)"
	FeatureDump             Feature = "import a dump (`from.dump`)"
)

// Features that not every engine has.
func Features() []Feature {
	return []Feature{
		FeatureBackupVolume, FeatureWorkloadIdentity, FeatureStandby, FeatureUpgrade, FeatureDurability, FeaturePooler, FeatureExtensions, FeatureReplication,
		FeatureMask, FeatureSnapshots, FeatureWALVolume, FeatureHugePages, FeatureQueries, FeatureImport, FeatureDump,
	}
}
