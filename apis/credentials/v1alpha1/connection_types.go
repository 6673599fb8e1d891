// SPDX-License-Identifier: Apache-2.0

package v1alpha1

// Suffixes of the keys of an endpoint, after its name.
const (
	SuffixHost    = "-host"
	SuffixPort    = "-port"
	SuffixURI     = "-uri"
	SuffixJDBCURL = "-jdbc-url"
)

// SecretTypeBinding is the prefix of the type of a Secret that is created with a connection; the type of the connection
// follows. The type of a Secret can never change, so a Secret that is older than its connection keeps its type.
const SecretTypeBinding = "servicebinding.io/"

// Keys of a connection, as the Service Binding Specification names them, and some that it does not define.
const (
	KeyType         = "type"
	KeyProvider     = "provider"
	KeyHost         = "host"
	KeyPort         = "port"
	KeyDatabase     = "database"
	KeyUsername     = "username"
	KeyURI          = "uri"
	KeyMultiHostURI = "multi-host-uri"
	KeyJDBCURL      = "jdbc-url"
	KeyCA           = "ca.crt"
)

// Types of service with a form of their own.
const (
	TypePostgreSQL = "postgresql"
	TypeMySQL      = "mysql"
	TypeMariaDB    = "mariadb"
	TypeMongoDB    = "mongodb"
	TypeRabbitMQ   = "rabbitmq"
)

// Connection is everything that a client needs to connect, except the password.
//
// +kubebuilder:validation:XValidation:rule="has(self.host) == has(self.port)",message="set both host and port, or neither"
// +kubebuilder:validation:XValidation:rule="has(self.host) || has(self.hosts)",message="set host and port, or hosts, or all of them"
// +kubebuilder:validation:XValidation:rule="!has(self.hosts) || self.hosts.size() < 2 || self.type in ['postgresql', 'mysql', 'mariadb', 'mongodb']",fieldPath=".hosts",messageExpression="'clients of type ' + self.type + ' accept one host: keep one, or set host and port'",message="clients of this type accept one host: keep one, or set host and port"
// +kubebuilder:validation:XValidation:rule="has(self.username) || !(self.type in ['postgresql', 'mysql', 'mariadb'])",fieldPath=".username",messageExpression="'type ' + self.type + ' needs a username'",message="this type needs a username"
// +kubebuilder:validation:XValidation:rule="!has(self.jdbcOptions) || self.type in ['postgresql', 'mysql', 'mariadb']",fieldPath=".jdbcOptions",messageExpression="'type ' + self.type + ' has no jdbc-url: remove jdbcOptions'",message="this type has no jdbc-url: remove jdbcOptions"
// +kubebuilder:validation:XValidation:rule="!has(self.alternateUsername) || (has(self.username) && self.username != self.alternateUsername)",fieldPath=".alternateUsername",message="alternateUsername takes turns with username: set username as well, to another name"
type Connection struct {
	// Type of the service: postgresql, mysql, mariadb, mongodb, rabbitmq, or another word of lower case letters, digits
	// and '-'. It is the scheme of the URI (amqp for rabbitmq). A Secret that is created with the connection has the
	// type servicebinding.io/<type>. postgresql, mysql and mariadb have a jdbc-url.
	//
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z]([-a-z0-9]*[a-z0-9])?$')",message="must be lower case letters, digits and -, start with a letter and end with a letter or digit, for instance postgresql"
	// +kubebuilder:example="postgresql"
	Type string `json:"type"`

	// Provider of the service, for clients that distinguish services of one type. Default: the Secret has no key
	// provider.
	//
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="self.matches('^[[:alnum:][:punct:]]+$')",message="must be letters, digits and punctuation"
	// +kubebuilder:example="capstan"
	// +optional
	Provider string `json:"provider,omitempty"`

	// Host is a DNS name or an IP address of the service as a whole, not of one member. It is in the keys host, uri and
	// jdbc-url. Default: the first of hosts, and all of them in uri and jdbc-url.
	//
	// +kubebuilder:example="orders-db-rw.production.svc"
	// +optional
	Host Host `json:"host,omitempty"`

	// Port of host.
	//
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=65535
	// +kubebuilder:example=5432
	// +optional
	Port *int32 `json:"port,omitempty"`

	// Hosts are the members of the service, in the order in which clients try them, 1 to 16; more than one for
	// postgresql, mysql, mariadb and mongodb. They are in the key multi-host-uri, with which clients find the leader
	// themselves. For postgresql it has target_session_attrs=read-write, or, in a jdbc-url, targetServerType=primary;
	// a jdbc-url of mysql has failOverReadOnly=false. The options can define them. Prefer DNS names: clients in Go
	// accept no IPv6 address here.
	//
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=16
	// +optional
	Hosts []HostPort `json:"hosts,omitempty"`

	// Endpoints are other addresses of the same service, for instance of a pooler or from outside the cluster. Each
	// adds the keys <name>-host, <name>-port and <name>-uri, and <name>-jdbc-url where there is a jdbc-url. Their URIs
	// have no options that choose among members. Default: none.
	//
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=4
	// +listType=map
	// +listMapKey=name
	// +optional
	Endpoints []Endpoint `json:"endpoints,omitempty"`

	// Database, or what else the path of the URI means, for instance a virtual host for rabbitmq. Default: none.
	//
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=128
	// +kubebuilder:validation:XValidation:rule="!self.matches('[[:cntrl:]]')",message="must not have control characters"
	// +kubebuilder:example="orders"
	// +optional
	Database string `json:"database,omitempty"`

	// Username to log in with. Types postgresql, mysql and mariadb need one. Default: none.
	//
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=128
	// +kubebuilder:validation:XValidation:rule="!self.matches('[[:cntrl:]]')",message="must not have control characters"
	// +kubebuilder:example="orders"
	// +optional
	Username string `json:"username,omitempty"`

	// AlternateUsername takes turns with username, so that two logins overlap. Each rotation first writes new values
	// under keys that end in .next, with which the server creates the other login. When rotation.accepted names them,
	// the username and the values are replaced at once. Default: the username does not change.
	//
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=128
	// +kubebuilder:validation:XValidation:rule="!self.matches('[[:cntrl:]]')",message="must not have control characters"
	// +kubebuilder:example="orders-b"
	// +optional
	AlternateUsername string `json:"alternateUsername,omitempty"`

	// Options are the parameters of uri and multi-host-uri. Options for other parts of the URI (user, password, host,
	// port, database) are rejected. Default: none.
	//
	// +kubebuilder:validation:MinProperties=1
	// +kubebuilder:validation:MaxProperties=32
	// +kubebuilder:validation:XValidation:rule="self.all(o, o.size() <= 63 && o.matches('^[a-zA-Z][-_.a-zA-Z0-9]*$') && !(o.lowerAscii() in ['user', 'username', 'password', 'passfile', 'host', 'hostaddr', 'port', 'dbname', 'database']))",message="names must be at most 63 letters, digits, -, _ and ., start with a letter, and not be user, username, password, passfile, host, hostaddr, port, dbname or database: use the fields beside options for them"
	// +kubebuilder:example={"sslmode":"verify-full"}
	// +optional
	Options map[string]OptionValue `json:"options,omitempty"`

	// JDBCOptions are the parameters of jdbc-url, whose names differ from the parameters of a URI. User and password are
	// rejected. Default: none.
	//
	// +kubebuilder:validation:MinProperties=1
	// +kubebuilder:validation:MaxProperties=32
	// +kubebuilder:validation:XValidation:rule="self.all(o, o.size() <= 63 && o.matches('^[a-zA-Z][-_.a-zA-Z0-9]*$') && !(o.lowerAscii() in ['user', 'username', 'password', 'password1', 'password2', 'password3', 'sslpassword', 'host', 'port', 'pghost', 'pgport', 'pgdbname', 'dbname']))",message="names must be at most 63 letters, digits, -, _ and ., start with a letter, and not be for user, password, host, port or database: use the fields beside jdbcOptions for them"
	// +kubebuilder:example={"sslmode":"verify-full"}
	// +optional
	JDBCOptions map[string]OptionValue `json:"jdbcOptions,omitempty"`

	// CAFrom is the source of the certificates that verify the service's certificate. They are copied to the key
	// ca.crt; content that is not a certificate is rejected. They are read again with every check of the Credential,
	// every ten minutes by default. Default: the Secret has no key ca.crt.
	//
	// +optional
	CAFrom *CASource `json:"caFrom,omitempty"`
}

// Host is a DNS name or an IP address.
//
// +kubebuilder:validation:MinLength=1
// +kubebuilder:validation:MaxLength=253
// +kubebuilder:validation:XValidation:rule="self.contains(':') ? isIP(self) : self.matches('^[a-zA-Z0-9]([-_.a-zA-Z0-9]*[a-zA-Z0-9])?$')",message="must be a DNS name or an IP address, without scheme, port and brackets"
type Host string

// OptionValue is the value of an option.
//
// +kubebuilder:validation:MaxLength=253
// +kubebuilder:validation:XValidation:rule="!self.matches('[[:cntrl:]]')",message="must not have control characters"
type OptionValue string

// HostPort is one member of a service.
type HostPort struct {
	// Host is its DNS name or IP address.
	//
	// +kubebuilder:example="orders-db-a.production.svc"
	Host Host `json:"host"`

	// Port that it listens on.
	//
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=65535
	// +kubebuilder:example=5432
	Port int32 `json:"port"`
}

// Endpoint is another address of a service.
type Endpoint struct {
	// Name is the prefix of its keys.
	//
	// +kubebuilder:validation:MaxLength=20
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z]([-a-z0-9]*[a-z0-9])?$') && self != 'multi-host'",message="must be lower case letters, digits and '-', start with a letter, end with a letter or digit, and not be multi-host"
	// +kubebuilder:example="pooler"
	Name string `json:"name"`

	// Host is its DNS name or IP address.
	//
	// +kubebuilder:example="orders-db-pooler.production.svc"
	Host Host `json:"host"`

	// Port that it listens on.
	//
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=65535
	// +kubebuilder:example=5432
	Port int32 `json:"port"`
}

// CASource is the source of certificates: exactly one of a Secret and a ConfigMap.
//
// +kubebuilder:validation:XValidation:rule="has(self.secretKeyRef) != has(self.configMapKeyRef)",message="set exactly one of secretKeyRef and configMapKeyRef"
type CASource struct {
	// SecretKeyRef is a key of a Secret.
	//
	// +optional
	SecretKeyRef *KeyReference `json:"secretKeyRef,omitempty"`

	// ConfigMapKeyRef is a key of a ConfigMap.
	//
	// +optional
	ConfigMapKeyRef *KeyReference `json:"configMapKeyRef,omitempty"`
}

// KeyReference is one key of a Secret or ConfigMap of the same namespace.
type KeyReference struct {
	// Name of the object.
	//
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?([.][a-z0-9]([-a-z0-9]*[a-z0-9])?)*$')",message="must be the name of an object: lower case letters, digits, '-' and '.', with a letter or digit at both ends"
	// +kubebuilder:example="orders-db-ca"
	Name string `json:"name"`

	// Key in the object's data.
	//
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="self.matches('^[-._a-zA-Z0-9]+$') && self != '.' && !self.startsWith('..')",message="must be letters, digits, '-', '_' and '.', and not start with '..'"
	// +kubebuilder:example="ca.crt"
	Key string `json:"key"`
}
