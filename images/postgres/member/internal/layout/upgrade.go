// SPDX-License-Identifier: Apache-2.0

package layout

// Folders of an upgrade to a later major version, on the volume of the member that does it. All of them are gone when it is done.
const (
	Upgrade = Volume + "/upgrade"
	// UpgradeState says how far it is.
	UpgradeState = Upgrade + "/state.json"
	// UpgradeCopy is the copy of the former data, in its version, and UpgradeData what becomes of it. In the end UpgradeData is renamed to
	// Data, which is how the upgrade takes place.
	UpgradeCopy = Upgrade + "/copy"
	UpgradeData = Upgrade + "/data"
	// UpgradeTrial is where data of the later version is tried and made. It may be half done, which UpgradeData never is before pg_upgrade.
	UpgradeTrial = Upgrade + "/trial"
	// UpgradeWork is where programs write what they say, and where the sockets of the servers are.
	UpgradeWork = Upgrade + "/work"
)
