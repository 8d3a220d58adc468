"""x"""

from standin.answer import Answer


def answer(messages, tools):
    return Answer(text="Hello there, I am a stand-in and this is my reply.")
