"""Redis's scripts of the service, each by itself."""

from .process import ROOT

LUA = ROOT / "storage" / "lua"


def runner(redis):
    """run(name, keys, *arguments): the reply of a script, as it is built in.  @redis: anything with command()."""
    def run(name, keys, *arguments):
        return redis.command("EVAL", (LUA / f"{name}.lua").read_text(), len(keys), *keys, *arguments)

    return run
