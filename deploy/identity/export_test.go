package identity

// Parts of this package that tests with a server need.
const (
	UserPayload = userPayload
	UserSubs    = userSubs
)

var Made = create
