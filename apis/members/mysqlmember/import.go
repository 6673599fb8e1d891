// SPDX-License-Identifier: Apache-2.0

package mysqlmember

// How the certificate of the source of an import is checked.
const (
	ImportVerifyFull = "VERIFY_IDENTITY"
	ImportVerifyCA   = "VERIFY_CA"
)

// SkipStoredObjects of an import: it leaves out views, triggers, routines and events.
const SkipStoredObjects = "StoredObjects"
