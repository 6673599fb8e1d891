// SPDX-License-Identifier: Apache-2.0

package engine

// A Feature is something that not every engine has. Its text is its row in the table of docs/database.md.
type Feature string

// Features, in the order of that table.
const (
	FeatureBackup      Feature = "backups and their verification (`backup`)"
	FeatureSource      Feature = "start from a backup, or follow another Database (`from`, `promote`)"
	FeatureRestore     Feature = "restore in place (`restore`)"
	FeatureUpgrade     Feature = "upgrade to another version (`version`, `upgrade`)"
	FeatureDurability  Feature = "other durability than `Synchronous` (`availability.durability`)"
	FeaturePooler      Feature = "poolers (`pooler`)"
	FeatureExtensions  Feature = "extensions (`extensions`)"
	FeatureReplication Feature = "changes for consumers (`replication`, `consumers[].replication`)"
)

// Features that not every engine has.
func Features() []Feature {
	return []Feature{
		FeatureBackup, FeatureSource, FeatureRestore, FeatureUpgrade, FeatureDurability, FeaturePooler, FeatureExtensions, FeatureReplication,
	}
}
