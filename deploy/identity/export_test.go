package identity

// What the tests that have a server see of this package.
const (
	UserPayload = userPayload
	UserSubs    = userSubs
)

var Made = create
